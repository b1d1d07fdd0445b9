/*
 * part_gather.c: what the writer gathers while series pass: for each (label name, value) the series that
 * have it, and for each day the series that were alive.
 *
 * Series come in storage order, so a label pair mostly comes in runs, and a series differs from the one
 * before it in few pairs. Only changes cost anything: a pair that appears opens a run, one that
 * disappears closes it and leaves an event (pair, first series, last series). In the end the events are
 * sorted by pair. Memory: 12 bytes an event, 16 a distinct pair. One thread; owned by the writer.
 */
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/part_format.h"

struct pair {
    struct part_key key;
    uint32_t open;   /* first series of the run that is open */
    uint32_t n_runs; /* closed */
};

struct event {
    uint32_t pair, from, to;
};

struct day {
    uint32_t *runs; /* [from, to] after [from, to] */
    size_t n, cap;  /* numbers: two a run */
};

struct part_gather {
    struct pair *pairs;
    size_t n_pairs, cap_pairs;
    uint32_t *slots; /* hash table over pairs: number + 1, 0 = free */
    size_t n_slots;
    struct event *events;
    size_t n_events, cap_events;
    struct day days[PART_DAYS_MAX];
    /* the pairs of the series before, sorted by name, and room for those of the next */
    struct open_pairs {
        struct part_key key[LIMIT_LABELS];
        uint32_t pair[LIMIT_LABELS];
        uint32_t n;
    } open[2];
    unsigned last; /* which of the two is the series before */
    /* after finish: pairs in order, and their runs one after another */
    uint32_t *order;
    uint32_t *runs;
    size_t *runs_at; /* of each pair in order; one more at the end */
};

struct part_gather *part_gather_create(void)
{
    struct part_gather *g = mem_zalloc(sizeof *g);
    g->n_slots = 1024;
    g->slots = mem_zalloc(g->n_slots * sizeof *g->slots);
    return g;
}

void part_gather_destroy(struct part_gather *g)
{
    if (g == NULL) return;
    for (size_t i = 0; i < PART_DAYS_MAX; i++)
        mem_free(g->days[i].runs);
    mem_free(g->pairs);
    mem_free(g->slots);
    mem_free(g->events);
    mem_free(g->order);
    mem_free(g->runs);
    mem_free(g->runs_at);
    mem_free(g);
}

static bool key_eq(struct part_key a, struct part_key b)
{
    return a.name == b.name && a.value == b.value;
}

static uint64_t key_hash(struct part_key key)
{
    uint64_t x = ((uint64_t)key.name << 32 | key.value) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ (x >> 32);
}

static uint32_t *slot_of(struct part_gather *g, struct part_key key)
{
    size_t i = key_hash(key) & (g->n_slots - 1);
    while (g->slots[i] != 0 && !key_eq(g->pairs[g->slots[i] - 1].key, key))
        i = (i + 1) & (g->n_slots - 1);
    return &g->slots[i];
}

static void grow(struct part_gather *g)
{
    mem_free(g->slots);
    g->n_slots *= 2;
    g->slots = mem_zalloc(g->n_slots * sizeof *g->slots);
    for (size_t i = 0; i < g->n_pairs; i++)
        *slot_of(g, g->pairs[i].key) = (uint32_t)i + 1;
}

static uint32_t open_run(struct part_gather *g, struct part_key key, uint32_t id)
{
    uint32_t *slot = slot_of(g, key);
    if (*slot == 0) {
        if (2 * (g->n_pairs + 1) > g->n_slots) {
            grow(g);
            slot = slot_of(g, key);
        }
        g->pairs = mem_grow(g->pairs, &g->cap_pairs, g->n_pairs + 1, sizeof *g->pairs);
        g->pairs[g->n_pairs++] = (struct pair){.key = key};
        *slot = (uint32_t)g->n_pairs;
    }
    uint32_t pair = *slot - 1;
    g->pairs[pair].open = id;
    return pair;
}

static void close_run(struct part_gather *g, uint32_t pair, uint32_t end)
{
    g->events = mem_grow(g->events, &g->cap_events, g->n_events + 1, sizeof *g->events);
    g->events[g->n_events++] = (struct event){pair, g->pairs[pair].open, end - 1};
    g->pairs[pair].n_runs++;
}

static void add_day(struct day *d, uint32_t id)
{
    if (d->n > 0 && d->runs[d->n - 1] + 1 == id) {
        d->runs[d->n - 1] = id;
        return;
    }
    d->runs = mem_grow(d->runs, &d->cap, d->n + 2, sizeof *d->runs);
    d->runs[d->n++] = id;
    d->runs[d->n++] = id;
}

void part_gather_add(struct part_gather *g, uint32_t id, const uint32_t *pairs, uint32_t n_pairs, uint64_t days)
{
    struct open_pairs *last = &g->open[g->last], *now = &g->open[1 - g->last];
    uint32_t i = 0;
    for (uint32_t j = 0; j < n_pairs; j++) {
        struct part_key key = now->key[j] = (struct part_key){pairs[2 * j], pairs[2 * j + 1]};
        while (i < last->n && last->key[i].name < key.name)
            close_run(g, last->pair[i++], id);
        bool goes_on = i < last->n && key_eq(last->key[i], key);
        now->pair[j] = goes_on ? last->pair[i++] : open_run(g, key, id);
    }
    while (i < last->n)
        close_run(g, last->pair[i++], id);
    now->n = n_pairs;
    g->last = 1 - g->last;
    for (; days != 0; days &= days - 1)
        add_day(&g->days[__builtin_ctzll(days)], id);
}

static int compare_pairs(const void *a, const void *b, void *arg)
{
    const struct pair *pairs = arg;
    struct part_key x = pairs[*(const uint32_t *)a].key, y = pairs[*(const uint32_t *)b].key;
    if (x.name != y.name) return x.name < y.name ? -1 : 1;
    return (x.value > y.value) - (x.value < y.value);
}

void part_gather_finish(struct part_gather *g, uint32_t n)
{
    struct open_pairs *last = &g->open[g->last];
    for (uint32_t i = 0; i < last->n; i++)
        close_run(g, last->pair[i], n);
    last->n = 0;
    g->order = mem_alloc((g->n_pairs + 1) * sizeof *g->order);
    for (size_t i = 0; i < g->n_pairs; i++)
        g->order[i] = (uint32_t)i;
    qsort_r(g->order, g->n_pairs, sizeof *g->order, compare_pairs, g->pairs);

    /* events are in the order of their last series, so those of one pair keep their order below */
    size_t *at = mem_alloc((g->n_pairs + 1) * sizeof *at);
    g->runs_at = mem_alloc((g->n_pairs + 1) * sizeof *g->runs_at);
    size_t sum = 0;
    for (size_t i = 0; i < g->n_pairs; i++) {
        g->runs_at[i] = at[g->order[i]] = sum;
        sum += g->pairs[g->order[i]].n_runs;
    }
    g->runs_at[g->n_pairs] = sum;
    check(sum == g->n_events);
    g->runs = mem_alloc((2 * sum + 1) * sizeof *g->runs);
    for (size_t i = 0; i < g->n_events; i++) {
        size_t to = 2 * at[g->events[i].pair]++;
        g->runs[to] = g->events[i].from;
        g->runs[to + 1] = g->events[i].to;
    }
    mem_free(at);
}

size_t part_gather_count(const struct part_gather *g)
{
    return g->n_pairs;
}

struct part_key part_gather_key(const struct part_gather *g, size_t i)
{
    return g->pairs[g->order[i]].key;
}

const uint32_t *part_gather_runs(const struct part_gather *g, size_t i, size_t *n)
{
    *n = g->runs_at[i + 1] - g->runs_at[i];
    return g->runs + 2 * g->runs_at[i];
}

const uint32_t *part_gather_day(const struct part_gather *g, unsigned day, size_t *n)
{
    *n = g->days[day].n / 2;
    return g->days[day].runs;
}
