# http-parser: one file, with Debian's patches to it (a body has either a length or chunks).
apply cherry-pick.v2.9.4-4-g805a0d1.fix-test-numbers.patch \
    cherry-pick.v2.9.4-6-gd9275da.fix-wsign-compare-warning.patch \
    cherry-pick.v2.9.4-7-g4b99e42.test-content-length-header-parsing.patch \
    cherry-pick.v2.9.4-8-ge13b274.allow-content-length-and-transfer-encoding-chunked.patch \
    cherry-pick.v2.9.4-9-g4f15b7d.fix-sizeof-http-parser-assert.patch CVE-2020-8287.patch
compile -I. -DHTTP_PARSER_STRICT=0 -- http_parser.c
install_headers . http_parser.h
