/*
 * usage.c: counts by metric name in shards; when a selector without a name was last asked for its names (usage.h).
 *
 * A filter is a cell of a direct-mapped table, found by the hash of the matchers; another one takes the
 * cell over, and what had gathered in it is lost: then its names were counted at least once already.
 * Locks are leaves, and none is held while the storage is asked.
 */
#include "query/usage.h"

#include <pthread.h>

#include "storage/base/alloc.h"
#include "storage/base/env.h"
#include "storage/base/limits.h"
#include "storage/base/map.h"

#define SHARDS 16
#define NAMES_MAX ((size_t)8192) /* of a shard */
#define FILTERS 1024
#define ASK_AGAIN_S 60

struct shard {
    pthread_mutex_t lock;
    struct strmap *names; /* guarded by lock: name → struct name_use, heap */
};

struct filter {
    uint64_t hash;
    int64_t asked_s; /* when the index was last asked */
    uint64_t runs;   /* since then */
};

struct usage {
    const struct hash_key *key;
    struct shard shards[SHARDS];
    pthread_mutex_t lock;
    struct filter filters[FILTERS]; /* guarded by lock, as below */
    int64_t since_s;
};

static int64_t now_s(void)
{
    return env_posix()->ops->now_ms(env_posix()) / 1000;
}

struct usage *usage_create(const struct hash_key *key)
{
    struct usage *u = mem_zalloc(sizeof *u);
    u->key = key;
    u->since_s = now_s();
    pthread_mutex_init(&u->lock, NULL);
    for (size_t i = 0; i < SHARDS; i++) {
        pthread_mutex_init(&u->shards[i].lock, NULL);
        u->shards[i].names = strmap_create(key);
    }
    return u;
}

static void forget_names(struct shard *s)
{
    size_t at = 0;
    str name;
    void *use;
    while (strmap_next(s->names, &at, &name, &use))
        mem_free(use);
    strmap_destroy(s->names);
}

void usage_destroy(struct usage *u)
{
    if (u == NULL) return;
    for (size_t i = 0; i < SHARDS; i++) {
        forget_names(&u->shards[i]);
        pthread_mutex_destroy(&u->shards[i].lock);
    }
    pthread_mutex_destroy(&u->lock);
    mem_free(u);
}

void usage_reset(struct usage *u)
{
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *s = &u->shards[i];
        pthread_mutex_lock(&s->lock);
        forget_names(s);
        s->names = strmap_create(u->key);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_lock(&u->lock);
    memset(u->filters, 0, sizeof u->filters);
    u->since_s = now_s();
    pthread_mutex_unlock(&u->lock);
}

static struct shard *shard_of(struct usage *u, str name)
{
    return &u->shards[checksum64(name.p, name.n) % SHARDS];
}

static void add(struct usage *u, str name, uint64_t requests, int64_t now)
{
    struct shard *s = shard_of(u, name);
    pthread_mutex_lock(&s->lock);
    void **found = strmap_get(s->names, name);
    struct name_use *use = found != NULL ? *found : NULL;
    if (use == NULL && strmap_count(s->names) < NAMES_MAX) {
        use = mem_zalloc(sizeof *use);
        strmap_put(s->names, name, use, NULL);
    }
    if (use != NULL) {
        use->requests += requests;
        use->last_s = now;
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- selectors without a name, or without series
 * ------------------------------------------------------------------------------------ */

static uint64_t hash_matchers(const struct matcher *m, uint32_t n)
{
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t words[] = {hash, m[i].op, checksum64(m[i].name.p, m[i].name.n),
                            checksum64(m[i].value.p, m[i].value.n)};
        hash = checksum64(words, sizeof words);
    }
    return hash;
}

/* How many runs of the filter are to be added to its names now; 0: not yet. */
static uint64_t runs_due(struct usage *u, uint64_t hash, int64_t now)
{
    uint64_t due = 0;
    pthread_mutex_lock(&u->lock);
    struct filter *f = &u->filters[hash % FILTERS];
    if (f->hash != hash) *f = (struct filter){.hash = hash};
    f->runs++;
    if (now - f->asked_s >= ASK_AGAIN_S) {
        due = f->runs;
        f->runs = 0;
        f->asked_s = now;
    }
    pthread_mutex_unlock(&u->lock);
    return due;
}

struct met {
    struct usage *u;
    uint64_t requests;
    int64_t now;
};

static bool add_met(void *arg, str name)
{
    const struct met *m = arg;
    add(m->u, name, m->requests, m->now);
    return true;
}

/* Once a minute at most: adds the runs of the filter since then to the names that the index has for these sets. */
static void ask_index(struct usage *u, struct db *db, const struct match_set *sets, uint32_t n,
                      const struct select_options *o, uint64_t hash)
{
    int64_t now = now_s();
    struct met m = {u, runs_due(u, hash, now), now};
    for (uint32_t i = 0; i < n && m.requests > 0; i++) /* a failure here is no failure of the query */
        err_free(storage_label_values(db, LABEL_NAME, sets[i].m, sets[i].n, o, add_met, &m));
}

void usage_note(struct usage *u, struct db *db, const struct plan_select *s)
{
    if (u == NULL) return;
    bool found = selection_count(s->selection) > 0;
    if (s->name.n > 0 && found) {
        add(u, s->name, 1, now_s());
    } else if (s->name.n > 0) { /* asked for, though there is nothing now: it counts if the name is known at all */
        struct matcher m = {.op = MATCH_EQ, .name = LABEL_NAME, .value = s->name};
        struct select_options all = {.t_min = LIMIT_TIME_MIN, .t_max = LIMIT_TIME_MAX};
        ask_index(u, db, &(struct match_set){&m, 1}, 1, &all, hash_matchers(&m, 1));
    } else if (found) {
        struct select_options o = {.t_min = s->t_min, .t_max = s->t_max};
        ask_index(u, db, s->sets, s->n_sets, &o, hash_matchers(s->matchers, s->n_matchers));
    }
}

void usage_note_known(struct usage *u, const struct plan_select *s)
{
    if (s->name.n > 0) {
        add(u, s->name, 1, now_s());
        return;
    }
    uint64_t hash = hash_matchers(s->matchers, s->n_matchers);
    pthread_mutex_lock(&u->lock);
    struct filter *f = &u->filters[hash % FILTERS];
    f->runs += f->hash == hash;
    pthread_mutex_unlock(&u->lock);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

struct name_use usage_of(struct usage *u, str name)
{
    struct shard *s = shard_of(u, name);
    pthread_mutex_lock(&s->lock);
    void **found = strmap_get(s->names, name);
    struct name_use use = found != NULL ? *(struct name_use *)*found : (struct name_use){0};
    pthread_mutex_unlock(&s->lock);
    return use;
}

int64_t usage_since(struct usage *u)
{
    pthread_mutex_lock(&u->lock);
    int64_t since = u->since_s;
    pthread_mutex_unlock(&u->lock);
    return since;
}
