/*
 * part_symbol.c: the strings of a part by number, and their numbers by string.
 *
 * Symbols are sorted, so comparing numbers compares strings. On disk they are front-coded
 * (part_seal.c); in the frame cache a symbol frame is kept as a page, spelled out, with the keyed hash
 * of each string, so that the identity of a series costs no hashing of strings:
 *
 *   u32 strings n, u32 zero, n hash128, n + 1 u32 ends (the first is 0), bytes of the strings
 */
#include "storage/base/alloc.h"
#include "storage/part_format.h"

struct page {
    uint32_t n;
    const struct hash128 *hash;
    const uint32_t *ends; /* string i is [ends[i], ends[i + 1]) */
    const char *bytes;
};

#define PAGE_HEADER 8

static size_t page_strings_at(uint32_t n)
{
    return PAGE_HEADER + n * sizeof(struct hash128) + (n + (size_t)1) * sizeof(uint32_t);
}

/* A view of page bytes, which only part_symbol_expand makes; they are aligned as mem_alloc aligns. */
static struct page page_of(const uint8_t *data)
{
    struct page p;
    memcpy(&p.n, data, sizeof p.n);
    p.hash = (const struct hash128 *)(data + PAGE_HEADER);
    p.ends = (const uint32_t *)(data + PAGE_HEADER + p.n * sizeof(struct hash128));
    p.bytes = (const char *)data + page_strings_at(p.n);
    return p;
}

static str page_string(const struct page *p, uint32_t i)
{
    return (str){p->bytes + p->ends[i], p->ends[i + 1] - p->ends[i]};
}

/* ---- expanding ---------------------------------------------------------------------------------------------- */

/* Spells out all strings of a pack, one after another; ends[i + 1] is where string i ends. */
static bool spell(const struct part_pack_view *v, struct buf *strings, uint32_t *ends)
{
    struct cursor c = part_pack_from(v, 0);
    uint32_t g = 0, group_end = 0, before = 0;
    ends[0] = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        uint64_t shared = cursor_varint(&c);
        str rest = cursor_lenstr(&c);
        if (i == group_end) { /* a group's first string stands for itself */
            if (shared != 0 || part_pack_group(v, g).first != i) return false;
            group_end = ++g < v->n_groups ? part_pack_group(v, g).first : v->n;
        }
        size_t length = shared + rest.n;
        if (c.failed || shared > ends[i] - before || length > LIMIT_LABEL_VALUE) return false;
        uint8_t *to = buf_reserve(strings, length + 1); /* never of size zero */
        if (to == NULL) return false;                   /* over its cap */
        memcpy(to, strings->data + before, shared);
        if (rest.n > 0) memcpy(to + shared, rest.p, rest.n);
        strings->n += length;
        ends[i + 1] = (uint32_t)strings->n;
        str last = {(const char *)strings->data + before, ends[i] - before};
        str now = {(const char *)strings->data + ends[i], length};
        if (i > 0 && str_cmp(last, now) >= 0) return false;
        before = ends[i];
    }
    return cursor_left(&c) == 0;
}

err part_symbol_expand(const struct hash_key *key, uint8_t **data, size_t *n)
{
    struct part_pack_view v;
    struct buf strings = {.max = PART_SYMBOL_PAGE_MAX + LIMIT_LABEL_VALUE};
    uint32_t *ends = NULL;
    uint8_t *page = NULL;
    err e = NULL;
    if (!part_pack_open(*data, *n, &v) || v.n > v.bytes) { /* a string takes 2 bytes at least */
        e = err_corrupt("malformed symbol frame");
        goto out;
    }
    ends = mem_alloc((v.n + (size_t)1) * sizeof *ends);
    if (!spell(&v, &strings, ends)) {
        e = err_corrupt("malformed symbols");
        goto out;
    }
    size_t strings_at = page_strings_at(v.n);
    page = mem_zalloc(strings_at + strings.n + 1);
    memcpy(page, &v.n, sizeof v.n);
    memcpy(page + PAGE_HEADER + v.n * sizeof(struct hash128), ends, (v.n + (size_t)1) * sizeof *ends);
    if (strings.n > 0) memcpy(page + strings_at, strings.data, strings.n);
    struct hash128 *hash = (struct hash128 *)(page + PAGE_HEADER);
    for (uint32_t i = 0; i < v.n; i++)
        hash[i] = hash128(key, page + strings_at + ends[i], ends[i + 1] - ends[i]);
    *n = strings_at + strings.n;
out:
    mem_free(*data);
    *data = page;
    buf_deinit(&strings);
    mem_free(ends);
    return e;
}

/* ---- looking up --------------------------------------------------------------------------------------------- */

/* The page in a cache entry, of the size that the index says. */
static err page_check(struct part_cursor *c, uint32_t frame, const struct fcache_entry *e, struct page *out)
{
    const struct part_index *ix = c->ix;
    bool last = frame + 1 == ix->frames[PART_FRAME_SYMBOL].n;
    uint32_t next = last ? c->p->footer.n_symbols : ix->symbol_first[frame + 1];
    *out = page_of(e->data);
    if (out->n == next - ix->symbol_first[frame]) return NULL;
    return part_cursor_corrupt(c, PART_FRAME_SYMBOL, frame, "another number of symbols than its index says");
}

/* The page, pinned for the cursor's life. */
static err page_get(struct part_cursor *c, uint32_t frame, struct page *out)
{
    size_t n_frames = c->ix->frames[PART_FRAME_SYMBOL].n;
    if (c->symbols == NULL) c->symbols = mem_zalloc(n_frames * sizeof(const struct fcache_entry *));
    if (c->symbols[frame] == NULL) TRY(part_cursor_hold(c, PART_FRAME_SYMBOL, frame, &c->symbols[frame]));
    return page_check(c, frame, c->symbols[frame], out);
}

/* The frame of a symbol and its place there. */
static err locate(struct part_cursor *c, uint32_t symbol, uint32_t *frame, uint32_t *i)
{
    TRY(part_cursor_index(c));
    if (symbol >= c->p->footer.n_symbols)
        return part_corrupt(c->p, c->p->footer.meta.bytes, "reference to a symbol that is not there");
    *frame = part_cursor_frame_of(c->ix->symbol_first, c->ix->frames[PART_FRAME_SYMBOL].n, symbol);
    *i = symbol - c->ix->symbol_first[*frame];
    return NULL;
}

err part_symbol(struct part_cursor *c, uint32_t symbol, str *out)
{
    struct page page;
    uint32_t frame, i;
    TRY(locate(c, symbol, &frame, &i));
    TRY(page_get(c, frame, &page));
    *out = page_string(&page, i);
    return NULL;
}

err part_symbol_walk(struct part_cursor *c, uint32_t symbol, str *out)
{
    struct page page;
    const struct fcache_entry *e;
    uint32_t frame, i;
    TRY(locate(c, symbol, &frame, &i));
    TRY(part_cursor_frame(c, PART_FRAME_SYMBOL, frame, &e));
    TRY(page_check(c, frame, e, &page));
    *out = page_string(&page, i);
    return NULL;
}

err part_symbol_hash(struct part_cursor *c, uint32_t symbol, struct hash128 *out)
{
    struct page page;
    uint32_t frame, i;
    TRY(locate(c, symbol, &frame, &i));
    TRY(page_get(c, frame, &page));
    *out = page.hash[i];
    return NULL;
}

/* The last symbol frame that starts at or before s; 0 if none does. */
static uint32_t frame_before(const struct part_index *ix, str s)
{
    size_t low = 0, high = ix->frames[PART_FRAME_SYMBOL].n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(ix->symbol_string[middle], s) <= 0)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

err part_symbol_lower_bound(struct part_cursor *c, str s, uint32_t *symbol, bool *equal)
{
    TRY(part_cursor_index(c));
    *symbol = 0;
    *equal = false;
    if (c->p->footer.n_symbols == 0) return NULL;
    uint32_t frame = frame_before(c->ix, s);
    struct page page;
    TRY(page_get(c, frame, &page));
    uint32_t low = 0, high = page.n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(page_string(&page, middle), s) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *symbol = c->ix->symbol_first[frame] + low;
    *equal = low < page.n && str_eq(page_string(&page, low), s);
    return NULL;
}
