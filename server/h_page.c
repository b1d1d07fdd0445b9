/*
 * h_page.c: the built-in page and its files, out of the binary.
 *
 * The page itself is asked for anew each time and answered with 304 if it is still the same; its files
 * carry a hash of their contents in their names, so a browser may keep them for good. They are stored
 * compressed; the rare client that takes no gzip gets them expanded. The policy allows what the page
 * needs and nothing else: no inline code or style, no other origin, no frames. Runs on the loop, also
 * while the log is replayed: the page tells then that the server is starting.
 */
#include "server/gzip.h"
#include "server/handlers.h"
#include "server/page_assets.h"

#define COMMON_HEADERS                                                                                                 \
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"
#define PAGE_HEADERS                                                                                                   \
    COMMON_HEADERS "Cache-Control: no-cache\r\nX-Frame-Options: DENY\r\n"                                              \
                   "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "                \
                   "font-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; "                     \
                   "base-uri 'none'; form-action 'none'\r\n"
#define ASSET_HEADERS COMMON_HEADERS "Cache-Control: public, max-age=31536000, immutable\r\n"

static const struct page_asset *find(str name)
{
    for (size_t i = 0; i < page_assets_n; i++)
        if (str_eq(str_of(page_assets[i].name), name)) return &page_assets[i];
    return NULL;
}

/* True if an If-None-Match header names the tag, or is *. Tags are compared weakly: W/ does not count. */
static bool names_tag(str header, const char *etag)
{
    str tag = str_of(etag);
    if (str_starts_with(tag, STR("W/"))) tag = (str){tag.p + 2, tag.n - 2};
    return str_eq(header, STR("*")) || (header.n >= tag.n && memmem(header.p, header.n, tag.p, tag.n) != NULL);
}

static void put_body(struct server *s, struct exchange *x, const struct page_asset *a)
{
    bool takes_gzip =
        s->config->compression == COMPRESSION_GZIP && gzip_accepted(http_header(&x->in, HEADER_ACCEPT_ENCODING));
    x->out.gzipped = takes_gzip;
    if (takes_gzip)
        buf_put(&x->out.body, a->gzip, a->gzip_n);
    else if (!gzip_expand((str){(const char *)a->gzip, a->gzip_n}, a->n, &x->out.body))
        answer_error(&x->out, 500, "internal", "a file of the page can't be expanded");
}

static void answer_asset(struct server *s, struct exchange *x, const struct page_asset *a)
{
    x->out.content_type = a->type;
    x->out.etag = a->etag;
    x->out.headers = a->name[0] == '\0' ? PAGE_HEADERS : ASSET_HEADERS;
    bool same = names_tag(http_header(&x->in, HEADER_IF_NONE_MATCH), a->etag);
    x->out.status = same ? 304 : 200;
    if (!same) put_body(s, x, a);
}

void h_page_index(struct server *s, struct exchange *x)
{
    const struct page_asset *a = find(STR(""));
    if (a != NULL)
        answer_asset(s, x, a);
    else
        answer_error(&x->out, 404, "not_found", "this server was built without its page");
}

void h_page_asset(struct server *s, struct exchange *x)
{
    const struct page_asset *a = x->path_arg.n > 0 ? find(x->path_arg) : NULL;
    if (a != NULL)
        answer_asset(s, x, a);
    else
        answer_error(&x->out, 404, "not_found", "the page has no such file; reload it if the server was updated");
}
