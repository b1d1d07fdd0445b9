# jemalloc: pages of 64 KiB on arm64, which run on kernels with 4, 16 and 64 KiB pages; what configure would
# take from the machine that builds (page size, huge pages, address bits) is said.
#
# Its Makefile compiles every file twice, to learn which names want a prefix (arena_init is also ours).
# Here they get it in the archive, after one compilation.
case $arch in
amd64) host=x86_64-linux-musl page=12 ;;
arm64) host=aarch64-linux-musl page=16 ;;
esac
./configure --host=$host --build="$(gcc -dumpmachine)" --with-lg-page=$page --with-lg-hugepage=21 --with-lg-vaddr=48 \
    --with-jemalloc-prefix= --disable-cxx --disable-shared --disable-doc --disable-libdl --disable-prof-libgcc \
    --disable-prof-gcc --disable-fill --with-version=5.3.0-0-g0 >configure.log 2>&1 || {
    tail -n 40 configure.log config.log
    exit 1
}
: >include/jemalloc/internal/private_namespace.h
rm src/zone.c # for another system
compile -std=gnu11 -Iinclude -D_GNU_SOURCE -D_REENTRANT -w -fvisibility=hidden -- src/*.c

public=$(cut -d: -f1 include/jemalloc/internal/public_symbols.txt)
"$folder/bin/nm" --defined-only --extern-only --format=posix "$folder/lib/lib$name.a" |
    awk 'NF > 1 && $2 != "U" { print $1 }' | sort -u | grep -vxF "$public" | grep -v '^__' |
    awk '{ print $1, "je_" $1 }' >names
"$folder/bin/objcopy" --enable-deterministic-archives --redefine-syms=names "$folder/lib/lib$name.a"
install_headers jemalloc include/jemalloc/jemalloc.h
