/*
 * page_assets.h: the files of the built-in page, as the binary carries them.
 *
 * The table is generated from server/page by its build.mjs into build/page/assets.c. Constant; any thread.
 */
#ifndef VARVE_SERVER_PAGE_ASSETS_H
#define VARVE_SERVER_PAGE_ASSETS_H

#include <stddef.h>
#include <stdint.h>

struct page_asset {
    const char *name;    /* what stands behind /assets/; "" = the page itself */
    const char *type;    /* Content-Type */
    const char *etag;    /* W/"...", of the contents */
    const uint8_t *gzip; /* one gzip member */
    size_t gzip_n;
    size_t n; /* bytes when expanded */
};

extern const struct page_asset page_assets[];
extern const size_t page_assets_n;

#endif
