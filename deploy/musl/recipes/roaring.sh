# CRoaring: its kernels for AVX2 are chosen at run time by itself.
compile -std=gnu11 -Iinclude -O3 -- src/*.c src/containers/*.c
install_headers . include/roaring
