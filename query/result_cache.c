/*
 * result_cache.c: a table from questions to answers and a list of them by last use (result_cache.h).
 *
 * An answer is one arena and has references: the table's, and those of the queries that print it. One lock guards table
 * and list; copying is done outside.
 */
#include "query/result_cache.h"

#include <pthread.h>

#include "storage/base/alloc.h"

#define ENTRY_PART 8 /* an answer may take an eighth of the cache */

struct entry {
    struct kept_result result; /* first: entries are found by it */
    struct arena arena;        /* of all that the answer points to */
    str question;
    size_t bytes;
    unsigned refs;               /* guarded by the cache's lock */
    struct entry *newer, *older; /* by last use; guarded by the lock */
};

struct result_cache {
    size_t max_bytes;
    pthread_mutex_t lock;
    struct strmap *entries;        /* question → entry; guarded by lock, as what follows */
    struct entry *newest, *oldest; /* by last use */
    size_t bytes;
    struct counter *evicted;
};

struct result_cache *result_cache_create(const struct hash_key *key, size_t max_bytes, struct metrics *metrics)
{
    struct result_cache *c = mem_zalloc(sizeof *c);
    c->max_bytes = max_bytes;
    c->entries = strmap_create(key);
    c->evicted = metrics_counter(metrics, "varve_result_cache_evictions_total", "",
                                 "Answers to range queries that made room for others.");
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

static void unref_locked(struct entry *e)
{
    if (--e->refs > 0) return;
    arena_deinit(&e->arena);
    mem_free(e);
}

static void unlink_locked(struct result_cache *c, struct entry *e)
{
    *(e->newer != NULL ? &e->newer->older : &c->newest) = e->older;
    *(e->older != NULL ? &e->older->newer : &c->oldest) = e->newer;
}

static void link_locked(struct result_cache *c, struct entry *e)
{
    e->newer = NULL;
    e->older = c->newest;
    *(c->newest != NULL ? &c->newest->newer : &c->oldest) = e;
    c->newest = e;
}

static void drop_locked(struct result_cache *c, struct entry *e)
{
    strmap_remove(c->entries, e->question);
    unlink_locked(c, e);
    c->bytes -= e->bytes;
    unref_locked(e);
}

void result_cache_clear(struct result_cache *c)
{
    if (c == NULL) return;
    pthread_mutex_lock(&c->lock);
    while (c->oldest != NULL)
        drop_locked(c, c->oldest);
    pthread_mutex_unlock(&c->lock);
}

void result_cache_destroy(struct result_cache *c)
{
    if (c == NULL) return;
    result_cache_clear(c);
    strmap_destroy(c->entries);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

size_t result_cache_bytes(struct result_cache *c)
{
    if (c == NULL) return 0;
    pthread_mutex_lock(&c->lock);
    size_t bytes = c->bytes;
    pthread_mutex_unlock(&c->lock);
    return bytes;
}

const struct kept_result *result_cache_get(struct result_cache *c, str question)
{
    pthread_mutex_lock(&c->lock);
    void **found = strmap_get(c->entries, question);
    struct entry *e = found != NULL ? *found : NULL;
    if (e != NULL) {
        e->refs++;
        unlink_locked(c, e);
        link_locked(c, e);
    }
    pthread_mutex_unlock(&c->lock);
    return e != NULL ? &e->result : NULL;
}

void result_cache_release(struct result_cache *c, const struct kept_result *r)
{
    if (r == NULL) return;
    pthread_mutex_lock(&c->lock);
    unref_locked((struct entry *)(uintptr_t)r);
    pthread_mutex_unlock(&c->lock);
}

/* What a copy takes at least. */
static size_t bytes_least(str question, const struct kept_result *r)
{
    size_t bytes = sizeof(struct entry) + 2 * question.n + r->n_rows * sizeof *r->rows;
    for (size_t i = 0; i < r->n_rows; i++) {
        const struct labels *ls = &r->rows[i].labels;
        bytes += r->grid.n * sizeof(double) + ls->n * sizeof *ls->v;
        for (uint32_t k = 0; k < ls->n; k++)
            bytes += ls->v[k].name.n + ls->v[k].value.n;
    }
    for (size_t i = 0; i < r->n_notes; i++)
        bytes += sizeof *r->notes + r->notes[i].text.n;
    return bytes;
}

static struct entry *copy(str question, const struct kept_result *r)
{
    struct entry *e = mem_zalloc(sizeof *e);
    struct arena *a = &e->arena;
    e->result = *r;
    e->result.rows = arena_alloc(a, r->n_rows * sizeof *r->rows + 1);
    for (size_t i = 0; i < r->n_rows; i++)
        e->result.rows[i] = (struct held_row){.labels = labels_keep(&r->rows[i].labels, a),
                                              .v = arena_dup(a, r->rows[i].v, r->grid.n * sizeof(double))};
    e->result.notes = arena_dup(a, r->notes, r->n_notes * sizeof *r->notes);
    for (size_t i = 0; i < r->n_notes; i++)
        e->result.notes[i].text = arena_str(a, r->notes[i].text);
    e->question = arena_str(a, question);
    e->bytes = sizeof *e + a->bytes + question.n; /* the table has the question, too */
    e->refs = 1;
    return e;
}

void result_cache_put(struct result_cache *c, str question, const struct kept_result *r)
{
    if (bytes_least(question, r) > c->max_bytes / ENTRY_PART) return;
    struct entry *e = copy(question, r);
    pthread_mutex_lock(&c->lock);
    void **known = strmap_get(c->entries, question);
    if (known != NULL) drop_locked(c, *known); /* two at once: whoever comes last */
    while (c->oldest != NULL && c->bytes + e->bytes > c->max_bytes) {
        drop_locked(c, c->oldest);
        counter_inc(c->evicted);
    }
    strmap_put(c->entries, question, e, NULL);
    link_locked(c, e);
    c->bytes += e->bytes;
    pthread_mutex_unlock(&c->lock);
}
