# zlib: the compression library alone; zconf.h is told what its configure would have found.
compile -DHAVE_UNISTD_H -DHAVE_STDARG_H -DHAVE_HIDDEN -D_LARGEFILE64_SOURCE=1 -- \
    adler32.c compress.c crc32.c deflate.c infback.c inffast.c inflate.c inftrees.c trees.c uncompr.c zutil.c
sed -i 's/^#ifdef HAVE_UNISTD_H.*/#if 1/; s/^#ifdef HAVE_STDARG_H.*/#if 1/' zconf.h
install_headers . zlib.h zconf.h
