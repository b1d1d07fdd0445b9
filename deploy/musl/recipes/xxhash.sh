# xxHash: compiled in by its header (storage/base/hash.c), so there is nothing to build.
install_headers . xxhash.h xxh3.h
