/*
 * postings.c: sets of series numbers, as Roaring bitmaps in memory and as one of three forms of bytes.
 *
 * A set is owned by whoever made it; one thread changes it, several may read it. CRoaring's own
 * allocations that fail stop the process, as mem_alloc does.
 *
 * Bytes of a set: a tag, then
 *
 *   0 list     varint first number, then for each next one: varint (distance to the previous - 1)
 *   1 runs     for each run: varint (first number - end of the previous run - 1; of the first run: its
 *              first number), varint (length - 1)
 *   2 roaring  Roaring's portable serialization (RoaringFormatSpec)
 *
 * An empty set is the tag 0 alone. Lists and runs end with the bytes. The encoder takes the shorter of
 * the first two, and Roaring only where it halves them: zstd, which follows, shrinks varints better.
 * Decoding trusts nothing: Roaring's bytes are walked and checked before the library sees them.
 */
#include "storage/postings.h"

#include <roaring/roaring.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/varint.h"

enum { TAG_LIST, TAG_RUNS, TAG_ROARING };

#define SMALL_BYTES 4096 /* up to here Roaring is not tried */

struct postings {
    roaring_bitmap_t *r;
};

static struct postings *wrap(roaring_bitmap_t *r)
{
    check(r != NULL);
    struct postings *p = mem_alloc(sizeof *p);
    p->r = r;
    return p;
}

struct postings *postings_create(void)
{
    return wrap(roaring_bitmap_create());
}

struct postings *postings_range(uint32_t from, uint32_t to)
{
    struct postings *p = postings_create();
    if (to > from) roaring_bitmap_add_range(p->r, from, to);
    return p;
}

struct postings *postings_of(const uint32_t *ids, size_t n)
{
    return wrap(roaring_bitmap_of_ptr(n, ids));
}

void postings_destroy(struct postings *p)
{
    if (p == NULL) return;
    roaring_bitmap_free(p->r);
    mem_free(p);
}

struct postings *postings_copy(const struct postings *p)
{
    return wrap(roaring_bitmap_copy(p->r));
}

void postings_add(struct postings *p, uint32_t id)
{
    roaring_bitmap_add(p->r, id);
}

void postings_add_many(struct postings *p, const uint32_t *ids, size_t n)
{
    roaring_bitmap_add_many(p->r, n, ids);
}

void postings_and(struct postings *p, const struct postings *other)
{
    roaring_bitmap_and_inplace(p->r, other->r);
}

void postings_or(struct postings *p, const struct postings *other)
{
    roaring_bitmap_or_inplace(p->r, other->r);
}

void postings_andnot(struct postings *p, const struct postings *other)
{
    roaring_bitmap_andnot_inplace(p->r, other->r);
}

struct postings *postings_or_many(const struct postings **ps, size_t n)
{
    if (n == 0) return postings_create();
    const roaring_bitmap_t **rs = mem_alloc(n * sizeof(const roaring_bitmap_t *));
    for (size_t i = 0; i < n; i++)
        rs[i] = ps[i]->r;
    struct postings *p = wrap(roaring_bitmap_or_many(n, rs));
    mem_free(rs);
    return p;
}

bool postings_intersects(const struct postings *a, const struct postings *b)
{
    return roaring_bitmap_intersect(a->r, b->r);
}

bool postings_has(const struct postings *p, uint32_t id)
{
    return roaring_bitmap_contains(p->r, id);
}

uint64_t postings_count(const struct postings *p)
{
    return roaring_bitmap_get_cardinality(p->r);
}

bool postings_is_empty(const struct postings *p)
{
    return roaring_bitmap_is_empty(p->r);
}

bool postings_bounds(const struct postings *p, uint32_t *from, uint32_t *to)
{
    if (roaring_bitmap_is_empty(p->r)) return false;
    *from = roaring_bitmap_minimum(p->r);
    *to = roaring_bitmap_maximum(p->r);
    return true;
}

size_t postings_list(const struct postings *p, uint32_t *out, size_t n)
{
    roaring_uint32_iterator_t it;
    roaring_init_iterator(p->r, &it);
    size_t done = 0;
    while (done < n) {
        uint32_t want = n - done > UINT32_MAX ? UINT32_MAX : (uint32_t)(n - done);
        uint32_t got = roaring_read_uint32_iterator(&it, out + done, want);
        done += got;
        if (got < want) break;
    }
    return done;
}

/* ---- encoding ----------------------------------------------------------------------------------------------- */

static size_t varint_size(uint32_t v)
{
    return v < 1u << 7 ? 1 : v < 1u << 14 ? 2 : v < 1u << 21 ? 3 : v < 1u << 28 ? 4 : 5;
}

/* What the two varint forms of n runs take. */
static void measure(const uint32_t *runs, size_t n, uint64_t *list_bytes, uint64_t *run_bytes)
{
    uint32_t next = 0;
    *list_bytes = *run_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t from = runs[2 * i], length = runs[2 * i + 1] - from;
        size_t gap = varint_size(from - next);
        *list_bytes += gap + length;
        *run_bytes += gap + varint_size(length);
        next = from + length + 1;
    }
}

static void put_list(const uint32_t *runs, size_t n, struct buf *out)
{
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        buf_varint(out, runs[2 * i] - next);
        uint32_t zeros = runs[2 * i + 1] - runs[2 * i];
        uint8_t *p = buf_reserve(out, zeros);
        if (p == NULL) return;
        memset(p, 0, zeros);
        out->n += zeros;
        next = runs[2 * i + 1] + 1;
    }
}

static void put_runs(const uint32_t *runs, size_t n, struct buf *out)
{
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        buf_varint(out, runs[2 * i] - next);
        buf_varint(out, runs[2 * i + 1] - runs[2 * i]);
        next = runs[2 * i + 1] + 1;
    }
}

/* Writes the runs in Roaring's form if that is shorter than `max` bytes. */
static bool put_roaring(const uint32_t *runs, size_t n, uint64_t max, struct buf *out)
{
    roaring_bitmap_t *r = roaring_bitmap_create();
    check(r != NULL);
    for (size_t i = 0; i < n; i++)
        roaring_bitmap_add_range_closed(r, runs[2 * i], runs[2 * i + 1]);
    roaring_bitmap_run_optimize(r);
    size_t bytes = roaring_bitmap_portable_size_in_bytes(r);
    bool shorter = bytes < max;
    if (shorter) {
        buf_u8(out, TAG_ROARING);
        uint8_t *p = buf_reserve(out, bytes);
        if (p != NULL) out->n += roaring_bitmap_portable_serialize(r, (char *)p);
    }
    roaring_bitmap_free(r);
    return shorter;
}

void postings_encode_runs(const uint32_t *runs, size_t n, struct buf *out)
{
    uint64_t list_bytes, run_bytes;
    measure(runs, n, &list_bytes, &run_bytes);
    uint64_t best = list_bytes < run_bytes ? list_bytes : run_bytes;
    if (best > SMALL_BYTES && put_roaring(runs, n, best / 2, out)) return;
    if (list_bytes <= run_bytes) {
        buf_u8(out, TAG_LIST);
        put_list(runs, n, out);
    } else {
        buf_u8(out, TAG_RUNS);
        put_runs(runs, n, out);
    }
}

/* Runs gathered from single numbers. */
struct runs {
    uint32_t *v;
    size_t n, cap; /* numbers in v: two a run */
};

static void runs_add(struct runs *r, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (r->n > 0 && r->v[r->n - 1] + 1 == ids[i]) {
            r->v[r->n - 1] = ids[i];
            continue;
        }
        r->v = mem_grow(r->v, &r->cap, r->n + 2, sizeof *r->v);
        r->v[r->n++] = ids[i];
        r->v[r->n++] = ids[i];
    }
}

void postings_encode_list(const uint32_t *ids, size_t n, struct buf *out)
{
    struct runs r = {0};
    runs_add(&r, ids, n);
    postings_encode_runs(r.v, r.n / 2, out);
    mem_free(r.v);
}

void postings_encode(const struct postings *p, struct buf *out)
{
    struct runs r = {0};
    roaring_uint32_iterator_t it;
    roaring_init_iterator(p->r, &it);
    uint32_t ids[256], got;
    while ((got = roaring_read_uint32_iterator(&it, ids, ARRAY_LEN(ids))) > 0)
        runs_add(&r, ids, got);
    postings_encode_runs(r.v, r.n / 2, out);
    mem_free(r.v);
}

/* ---- decoding ----------------------------------------------------------------------------------------------- */

/* What a decoder is asked for: members below limit, of which only those in [from, to] are wanted. */
struct wanted {
    uint32_t limit, from, to;
};

static bool decode_list(const uint8_t *p, const uint8_t *end, const struct wanted *w, roaring_bitmap_t *into)
{
    uint32_t ids[256];
    size_t n = 0;
    uint64_t next = 0, gap;
    while (p < end && next <= w->to) {
        p = varint_get(p, end, &gap);
        if (p == NULL || gap >= w->limit || next + gap >= w->limit) return false;
        next += gap + 1;
        ids[n] = (uint32_t)(next - 1);
        n += ids[n] >= w->from;
        if (n == ARRAY_LEN(ids)) {
            roaring_bitmap_add_many(into, n, ids);
            n = 0;
        }
    }
    if (n > 0) roaring_bitmap_add_many(into, n, ids);
    return true;
}

static bool decode_runs(const uint8_t *p, const uint8_t *end, const struct wanted *w, roaring_bitmap_t *into)
{
    uint64_t next = 0, gap, length;
    while (p < end && next <= w->to) {
        p = varint_get(p, end, &gap);
        if (p == NULL) return false;
        p = varint_get(p, end, &length);
        if (p == NULL || gap >= w->limit || length >= w->limit || next + gap + length >= w->limit) return false;
        next += gap;
        if (next + length >= w->from) roaring_bitmap_add_range_closed(into, (uint32_t)next, (uint32_t)(next + length));
        next += length + 1;
    }
    return true;
}

static bool check_array(struct cursor *c, uint32_t count)
{
    int32_t last = -1;
    for (uint32_t i = 0; i < count; i++) {
        int32_t v = cursor_u16(c);
        if (v <= last) return false;
        last = v;
    }
    return !c->failed;
}

static bool check_run_container(struct cursor *c, uint32_t count)
{
    uint32_t n_runs = cursor_u16(c), sum = 0;
    int32_t last = -2;
    if (n_runs == 0) return false;
    for (uint32_t i = 0; i < n_runs; i++) {
        int32_t start = cursor_u16(c);
        int32_t end = start + cursor_u16(c);
        if (c->failed || start <= last + 1 || end > UINT16_MAX) return false;
        sum += (uint32_t)(end - start + 1);
        last = end;
    }
    return sum == count;
}

static bool check_bitset(struct cursor *c, uint32_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < 1024; i++)
        sum += (uint32_t)__builtin_popcountll(cursor_u64(c));
    return !c->failed && sum == count;
}

#define ROARING_COOKIE_RUNS 12347 /* low half of the first word; the high half is containers - 1 */
#define ROARING_COOKIE 12346      /* no run containers; the number of containers follows */
#define ROARING_ARRAY_MAX 4096

/* Walks a portable serialization: keys increase, containers are in order and hold what they say. */
static bool check_roaring(const uint8_t *bytes, size_t n)
{
    struct cursor c = cursor_of(bytes, n), header;
    uint32_t cookie = cursor_u32(&c), containers;
    const uint8_t *flags = NULL;
    if ((cookie & 0xffff) == ROARING_COOKIE_RUNS) {
        containers = (cookie >> 16) + 1;
        flags = cursor_bytes(&c, (containers + 7) / 8);
    } else if (cookie == ROARING_COOKIE) {
        containers = cursor_u32(&c);
    } else {
        return false;
    }
    if (c.failed || containers == 0 || containers > 65536) return false;
    header = c;
    cursor_bytes(&c, 4 * (size_t)containers);
    if (flags == NULL || containers >= 4) cursor_bytes(&c, 4 * (size_t)containers); /* offsets: derivable, unread */
    int32_t last_key = -1;
    for (uint32_t i = 0; i < containers && !c.failed; i++) {
        int32_t key = cursor_u16(&header);
        uint32_t count = (uint32_t)cursor_u16(&header) + 1;
        if (key <= last_key) return false;
        last_key = key;
        bool run = flags != NULL && (flags[i / 8] >> (i % 8) & 1);
        bool ok = run                          ? check_run_container(&c, count)
                  : count <= ROARING_ARRAY_MAX ? check_array(&c, count)
                                               : check_bitset(&c, count);
        if (!ok) return false;
    }
    return !c.failed && cursor_left(&c) == 0;
}

static bool decode_roaring(const uint8_t *p, const uint8_t *end, const struct wanted *w, roaring_bitmap_t *into)
{
    size_t n = (size_t)(end - p);
    if (!check_roaring(p, n)) return false;
    roaring_bitmap_t *r = roaring_bitmap_portable_deserialize_safe((const char *)p, n);
    if (r == NULL) return false;
    bool ok = roaring_bitmap_maximum(r) < w->limit;
    if (ok) roaring_bitmap_or_inplace(into, r);
    roaring_bitmap_free(r);
    return ok;
}

err postings_decode_or(str bytes, uint32_t limit, uint32_t from, uint32_t to, struct postings *into)
{
    const uint8_t *p = (const uint8_t *)bytes.p, *end = p + bytes.n;
    struct wanted w = {limit, from, to};
    if (bytes.n == 0) return err_corrupt("postings: no bytes");
    bool ok = *p == TAG_LIST      ? decode_list(p + 1, end, &w, into->r)
              : *p == TAG_RUNS    ? decode_runs(p + 1, end, &w, into->r)
              : *p == TAG_ROARING ? decode_roaring(p + 1, end, &w, into->r)
                                  : false;
    return ok ? NULL : err_corrupt("postings: malformed set of %zu bytes, tag %u", bytes.n, (unsigned)*p);
}

err postings_decode(str bytes, uint32_t limit, struct postings **out)
{
    struct postings *p = postings_create();
    err e = postings_decode_or(bytes, limit, 0, UINT32_MAX, p);
    if (e != NULL) {
        postings_destroy(p);
        return e;
    }
    *out = p;
    return NULL;
}
