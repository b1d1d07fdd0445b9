# PCRE2: 8-bit library as its NON-AUTOTOOLS-BUILD tells, with Unicode and the compiler to machine code.
cp src/config.h.generic src/config.h
cp src/pcre2.h.generic src/pcre2.h
cp src/pcre2_chartables.c.dist src/pcre2_chartables.c
files=(auto_possess chartables chkdint compile config context convert dfa_match error extuni find_bracket
    jit_compile maketables match match_data newline ord2utf pattern_info script_run serialize string_utils study substitute
    substring tables ucd valid_utf xclass)
present=()
for file in "${files[@]}"; do
    [ ! -f "src/pcre2_$file.c" ] || present+=("src/pcre2_$file.c")
done
compile -DHAVE_CONFIG_H -DPCRE2_CODE_UNIT_WIDTH=8 -DPCRE2_STATIC -DSUPPORT_PCRE2_8 -DSUPPORT_UNICODE -DSUPPORT_JIT -Isrc -- \
    "${present[@]}"
mv "$folder/lib/libpcre2.a" "$folder/lib/libpcre2-8.a"
install_headers . src/pcre2.h
