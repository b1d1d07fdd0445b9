# zstd: without dictionary building, old formats and threads. Its assembly stays out: it would add a
# choice at run time, and a reader of huffman streams in C is there anyway.
compile -Ilib -Ilib/common -DXXH_NAMESPACE=ZSTD_ -DZSTD_LEGACY_SUPPORT=0 -DZSTD_DISABLE_ASM -- \
    lib/common/*.c lib/compress/*.c lib/decompress/*.c
install_headers . lib/zstd.h lib/zstd_errors.h
