/*
 * top.c: a set-associative table of queries with a ring of periods each (top.h).
 *
 *   set = hash % SETS:  lock | way 0 | way 1 | ... | way 7
 *   way: hash, beginning of the text, ring of PERIODS × { which period, count, nanoseconds }
 *
 * A query is found by 64 bits of hash over its text and range. When a set is full the query that was run
 * longest ago makes room, so what runs often stays whatever else comes by. A ring's cell is of the period
 * that its number names; one of an older period counts as empty and is taken over.
 */
#include "server/top.h"

#include <pthread.h>
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/hash.h"

#define SETS 256
#define WAYS 8
#define PERIODS 32
#define PERIOD_NS (UINT64_C(120) * 1000 * 1000 * 1000)
#define TEXT_KEPT 2048 /* bytes of a query */

struct cell {
    uint32_t period, count;
    uint64_t ns;
};

struct way {
    uint64_t hash;
    char *text; /* heap, owned; NULL: the way is free */
    size_t n;
    int64_t range_s;
    uint64_t last_ns;
    struct cell cells[PERIODS];
};

struct set {
    pthread_mutex_t lock;
    struct way ways[WAYS]; /* guarded by lock */
};

struct top {
    struct set sets[SETS];
};

struct top *top_create(void)
{
    struct top *t = mem_zalloc(sizeof *t);
    for (size_t i = 0; i < SETS; i++)
        pthread_mutex_init(&t->sets[i].lock, NULL);
    return t;
}

void top_destroy(struct top *t)
{
    if (t == NULL) return;
    for (size_t i = 0; i < SETS; i++) {
        for (size_t k = 0; k < WAYS; k++)
            mem_free(t->sets[i].ways[k].text);
        pthread_mutex_destroy(&t->sets[i].lock);
    }
    mem_free(t);
}

/* Numbers begin at 1: a cell of zeros is of no period. */
static uint32_t period_of(uint64_t ns)
{
    return (uint32_t)(ns / PERIOD_NS) + 1;
}

/* The beginning of the text, without a part of a character at its end. */
static str cut(str text)
{
    if (text.n <= TEXT_KEPT) return text;
    size_t n = TEXT_KEPT;
    while (n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
        n--;
    return (str){text.p, n};
}

static struct way *take_way_locked(struct set *s, uint64_t hash, str text, int64_t range_s)
{
    struct way *oldest = &s->ways[0];
    for (size_t i = 0; i < WAYS; i++) {
        struct way *w = &s->ways[i];
        if (w->hash == hash && w->text != NULL) return w;
        if (w->last_ns < oldest->last_ns) oldest = w;
    }
    mem_free(oldest->text);
    str kept = cut(text);
    *oldest = (struct way){.hash = hash, .text = mem_dup_str(kept), .n = kept.n, .range_s = range_s};
    return oldest;
}

void top_note(struct top *t, str text, int64_t range_ms, uint64_t ns, uint64_t now_ns)
{
    if (t == NULL) return;
    int64_t range_s = range_ms / 1000;
    uint64_t hash = checksum64(text.p, text.n) + (uint64_t)range_s * UINT64_C(0x9e3779b97f4a7c15);
    struct set *s = &t->sets[(hash >> 32) % SETS];
    uint32_t period = period_of(now_ns);
    pthread_mutex_lock(&s->lock);
    struct way *w = take_way_locked(s, hash, text, range_s);
    struct cell *c = &w->cells[period % PERIODS];
    if (c->period != period) *c = (struct cell){.period = period};
    c->count++;
    c->ns += ns;
    w->last_ns = now_ns;
    pthread_mutex_unlock(&s->lock);
}

/* False: it did not run in the periods from `oldest` on. */
static bool sum_up(const struct way *w, uint32_t oldest, uint32_t newest, struct top_entry *out)
{
    out->count = out->ns = 0;
    for (size_t i = 0; i < PERIODS; i++) {
        const struct cell *c = &w->cells[i];
        if (c->period < oldest || c->period > newest) continue;
        out->count += c->count;
        out->ns += c->ns;
    }
    return out->count > 0;
}

struct top_entry *top_take(struct top *t, uint64_t lifetime_ns, uint64_t now_ns, struct arena *a, size_t *n)
{
    struct top_entry *v = arena_alloc(a, (size_t)SETS * WAYS * sizeof *v);
    uint32_t newest = period_of(now_ns), oldest = period_of(now_ns > lifetime_ns ? now_ns - lifetime_ns : 0);
    if (newest - oldest >= PERIODS) oldest = newest - PERIODS + 1;
    *n = 0;
    for (size_t i = 0; i < SETS; i++) {
        struct set *s = &t->sets[i];
        pthread_mutex_lock(&s->lock);
        for (size_t k = 0; k < WAYS; k++) {
            const struct way *w = &s->ways[k];
            struct top_entry *e = &v[*n];
            if (w->text == NULL || !sum_up(w, oldest, newest, e)) continue;
            e->text = arena_str(a, (str){w->text, w->n});
            e->range_s = w->range_s;
            ++*n;
        }
        pthread_mutex_unlock(&s->lock);
    }
    return v;
}

/* ---- order --------------------------------------------------------------------------------------------------- */

static int by_text(const struct top_entry *a, const struct top_entry *b)
{
    int order = str_cmp(a->text, b->text);
    return order != 0 ? order : (a->range_s > b->range_s) - (a->range_s < b->range_s);
}

static int by_count(const void *pa, const void *pb)
{
    const struct top_entry *a = pa, *b = pb;
    return a->count == b->count ? by_text(a, b) : (a->count < b->count) - (a->count > b->count);
}

static int by_sum(const void *pa, const void *pb)
{
    const struct top_entry *a = pa, *b = pb;
    return a->ns == b->ns ? by_text(a, b) : (a->ns < b->ns) - (a->ns > b->ns);
}

static int by_average(const void *pa, const void *pb)
{
    const struct top_entry *a = pa, *b = pb;
    double av = (double)a->ns / (double)a->count, bv = (double)b->ns / (double)b->count;
    return av < bv ? 1 : av > bv ? -1 : by_text(a, b);
}

void top_sort(struct top_entry *v, size_t n, enum top_order order)
{
    static int (*const orders[])(const void *, const void *) = {
        [TOP_BY_COUNT] = by_count, [TOP_BY_AVERAGE] = by_average, [TOP_BY_SUM] = by_sum};
    qsort(v, n, sizeof *v, orders[order]);
}
