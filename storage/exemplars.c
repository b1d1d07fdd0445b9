/*
 * exemplars.c: the ring of exemplars (exemplars.h); its file is exemplars_file.c's.
 *
 *   entries   numbered as they come; number k is in slots[k % cap]; first .. next - 1 are there
 *   series    found by identity; a chain of its entries, from the oldest on, by number
 *
 * Invariants: entries of a series are in the chain in the order in which they came, so the ring's oldest entry is the
 * oldest of its series; a series is in the map as long as it has entries, and in memory as long as someone refers to
 * it (the map, a query). `cap` grows up to `max`, `bytes` stays below `bytes_max` but for one entry. All is guarded by
 * `lock`, but for what never changes: a series' labels, an entry's exemplar while it is there.
 */
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/exemplars_internal.h"

#define FIRST_SLOTS 64
#define BYTES_EACH 1024 /* memory at most: so much for each exemplar, however long the labels of series are */
#define BYTES_LEAST ((size_t)1 << 20)

struct exemplars *exemplars_create(const struct hash_key *key, uint32_t max)
{
    check(max > 0);
    struct exemplars *e = mem_zalloc(sizeof *e);
    pthread_mutex_init(&e->lock, NULL);
    e->key = key;
    e->max = max;
    e->bytes_max = (size_t)max * BYTES_EACH + BYTES_LEAST;
    return e;
}

/* ---- copies of labels ------------------------------------------------------------------------------------------- */

static size_t labels_bytes(const struct labels *ls)
{
    size_t bytes = ls->n * sizeof(struct label);
    for (uint32_t i = 0; i < ls->n; i++)
        bytes += ls->v[i].name.n + ls->v[i].value.n;
    return bytes;
}

static str copy_str(char **at, str s)
{
    str copy = {*at, s.n};
    if (s.n > 0) memcpy(*at, s.p, s.n);
    *at += s.n;
    return copy;
}

/* room: labels_bytes of it, aligned as a struct label. */
static struct labels copy_labels(void *room, const struct labels *ls)
{
    struct labels copy = {room, ls->n};
    char *at = (char *)(copy.v + ls->n);
    for (uint32_t i = 0; i < ls->n; i++) {
        copy.v[i].name = copy_str(&at, ls->v[i].name);
        copy.v[i].value = copy_str(&at, ls->v[i].value);
    }
    return copy;
}

/* ---- series ----------------------------------------------------------------------------------------------------- */

static struct ring_series *series_create(struct exemplars *e, struct hash128 id, const struct labels *ls)
{
    size_t bytes = sizeof(struct ring_series) + labels_bytes(ls);
    struct ring_series *s = mem_alloc(bytes);
    *s = (struct ring_series){.id = id, .refs = 1, .bytes = bytes, .oldest = e->next, .newest = e->next};
    s->labels = copy_labels(s + 1, ls);
    e->bytes += bytes;
    return s;
}

static void series_unref(struct exemplars *e, struct ring_series *s)
{
    if (--s->refs > 0) return;
    e->bytes -= s->bytes;
    mem_free(s);
}

static struct ring_series *series_of(uint64_t map_value)
{
    return (struct ring_series *)(uintptr_t)map_value; // NOLINT(performance-no-int-to-ptr)
}

static struct ring_series *series_find(const struct exemplars *e, struct hash128 id)
{
    const uint64_t *found = map_get(&e->series, id);
    return found == NULL ? NULL : series_of(*found);
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

struct ring_entry *exemplars_entry(const struct exemplars *e, uint64_t number)
{
    return &e->slots[number % e->cap];
}

static void evict_oldest(struct exemplars *e)
{
    struct ring_entry *entry = exemplars_entry(e, e->first++);
    struct ring_series *s = entry->series;
    s->oldest = entry->next;
    if (--s->n == 0) {
        map_remove(&e->series, s->id);
        series_unref(e, s);
    }
    e->bytes -= entry->bytes;
    mem_free(entry->x);
}

/* Makes room for one more entry: more slots up to the bound, then the oldest one's. */
static void make_room(struct exemplars *e)
{
    while (e->first < e->next && e->bytes >= e->bytes_max)
        evict_oldest(e);
    size_t n = (size_t)(e->next - e->first);
    if (n < e->cap) return;
    if (e->cap == e->max) {
        evict_oldest(e);
        return;
    }
    size_t cap = e->cap == 0 ? FIRST_SLOTS : 2 * e->cap;
    if (cap > e->max) cap = e->max;
    struct ring_entry *slots = mem_alloc(cap * sizeof *slots);
    for (uint64_t k = e->first; k < e->next; k++)
        slots[k % cap] = *exemplars_entry(e, k);
    mem_free(e->slots);
    e->slots = slots;
    e->cap = cap;
}

/* Entries may leave for the new one, even all of its series: it is looked up afterwards. */
static void push(struct exemplars *e, struct hash128 id, const struct labels *series, const struct exemplar *x)
{
    make_room(e);
    struct ring_series *s = series_find(e, id);
    if (s == NULL) {
        s = series_create(e, id, series);
        map_put(&e->series, id, (uintptr_t)s, NULL);
    } else {
        exemplars_entry(e, s->newest)->next = e->next;
    }
    size_t bytes = sizeof *x + labels_bytes(&x->labels);
    struct exemplar *copy = mem_alloc(bytes);
    *copy = *x;
    copy->labels = copy_labels(copy + 1, &x->labels);
    s->newest = e->next++;
    s->n++;
    *exemplars_entry(e, s->newest) = (struct ring_entry){.series = s, .x = copy, .bytes = bytes};
    e->bytes += bytes;
}

enum exemplar_fate exemplars_add(struct exemplars *e, const struct labels *series, const struct exemplar *x,
                                 uint64_t seq)
{
    if (!exemplar_fits(x)) return EXEMPLAR_TOO_LONG;
    struct hash128 id = labels_id(e->key, series);
    enum exemplar_fate fate = EXEMPLAR_STORED;
    pthread_mutex_lock(&e->lock);
    const struct ring_series *s = series_find(e, id);
    const struct exemplar *newest = s == NULL ? NULL : exemplars_entry(e, s->newest)->x;
    if (newest != NULL && exemplar_eq(newest, x))
        fate = EXEMPLAR_REPEATED;
    else if (newest != NULL && exemplar_before(x, newest))
        fate = EXEMPLAR_OUT_OF_ORDER;
    else
        push(e, id, series, x);
    if (fate == EXEMPLAR_STORED && seq > e->seq) e->seq = seq;
    pthread_mutex_unlock(&e->lock);
    return fate;
}

void exemplars_destroy(struct exemplars *e)
{
    if (e == NULL) return;
    while (e->first < e->next)
        evict_oldest(e);
    check(e->bytes == 0);
    map_deinit(&e->series);
    mem_free(e->slots);
    pthread_mutex_destroy(&e->lock);
    mem_free(e);
}

void exemplars_stats(struct exemplars *e, struct exemplars_stats *out)
{
    pthread_mutex_lock(&e->lock);
    out->exemplars = e->next - e->first;
    out->series = e->series.n;
    out->bytes = e->bytes + e->cap * sizeof *e->slots + e->series.cap * sizeof *e->series.slots;
    pthread_mutex_unlock(&e->lock);
}

uint64_t exemplars_seq(struct exemplars *e)
{
    pthread_mutex_lock(&e->lock);
    uint64_t seq = e->seq;
    pthread_mutex_unlock(&e->lock);
    return seq;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* References to all series with exemplars that may be in the range; *out is heap memory. */
static size_t candidates(struct exemplars *e, int64_t t_min, int64_t t_max, struct ring_series ***out)
{
    size_t n = 0;
    pthread_mutex_lock(&e->lock);
    *out = mem_alloc(e->series.n * sizeof **out + 1);
    for (size_t i = 0; i < e->series.cap; i++) {
        if (!e->series.slots[i].used) continue;
        struct ring_series *s = series_of(e->series.slots[i].value);
        if (exemplars_entry(e, s->oldest)->x->t > t_max || exemplars_entry(e, s->newest)->x->t < t_min) continue;
        s->refs++;
        (*out)[n++] = s;
    }
    pthread_mutex_unlock(&e->lock);
    return n;
}

static err matches_some(const struct labels *ls, const struct exemplar_selector *s, size_t n, bool *matched)
{
    *matched = false;
    for (size_t i = 0; i < n && !*matched; i++)
        TRY(matchers_match(s[i].m, s[i].n, ls, matched));
    return NULL;
}

/* Under the lock: what of the series is in the range, copied. */
static void copy_series(const struct exemplars *e, const struct ring_series *s, int64_t t_min, int64_t t_max,
                        struct arena *a, struct exemplar_series *out)
{
    *out =
        (struct exemplar_series){.labels = labels_copy(a, &s->labels), .v = arena_alloc(a, s->n * sizeof *out->v + 1)};
    uint64_t k = s->oldest;
    for (uint32_t i = 0; i < s->n; i++, k = exemplars_entry(e, k)->next) {
        const struct exemplar *x = exemplars_entry(e, k)->x;
        if (x->t < t_min || x->t > t_max) continue;
        out->v[out->n] = *x;
        out->v[out->n++].labels = labels_copy(a, &x->labels);
    }
}

static int compare_series(const void *a, const void *b)
{
    const struct exemplar_series *x = a, *y = b;
    return labels_cmp(&x->labels, &y->labels);
}

/* Labels never change, so matching them needs no lock; writers wait for copying only. */
err exemplars_select(struct exemplars *e, const struct exemplar_selector *s, size_t n, int64_t t_min, int64_t t_max,
                     struct arena *a, struct exemplar_series **out, size_t *n_out)
{
    struct ring_series **all;
    size_t n_all = candidates(e, t_min, t_max, &all), matched = 0;
    err failure = NULL;
    for (size_t i = 0; i < n_all && failure == NULL; i++) {
        bool matches;
        failure = matches_some(&all[i]->labels, s, n, &matches);
        if (failure != NULL || !matches) continue;
        struct ring_series *found = all[i];
        all[i] = all[matched];
        all[matched++] = found;
    }
    if (failure != NULL) matched = 0;
    *out = arena_alloc(a, matched * sizeof **out + 1);
    *n_out = 0;
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < matched; i++) {
        copy_series(e, all[i], t_min, t_max, a, &(*out)[*n_out]);
        if ((*out)[*n_out].n > 0) (*n_out)++;
    }
    for (size_t i = 0; i < n_all; i++)
        series_unref(e, all[i]);
    pthread_mutex_unlock(&e->lock);
    mem_free(all);
    qsort(*out, *n_out, sizeof **out, compare_series);
    return failure;
}
