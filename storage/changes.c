/*
 * changes.c: a list of versions, each with the oldest time touched since (changes.h).
 *
 * That time rises from version to version, as what happened since a later moment happened since an earlier one, too. So
 * a write lowers the newest few entries and stops at the first that is as low already. Versions are only made when one
 * is asked for and something was touched meanwhile; when there are too many the older half is forgotten.
 */
#include "storage/changes.h"

#include <pthread.h>
#include <string.h>

#include "storage/base/alloc.h"

#define VERSIONS_MAX 512u

struct version {
    uint64_t number;
    int64_t t_min; /* oldest time touched since; INT64_MAX: none */
};

struct changes {
    pthread_mutex_t lock;
    struct version v[VERSIONS_MAX]; /* guarded by lock, as n; by number */
    uint32_t n;
};

struct changes *changes_create(void)
{
    struct changes *c = mem_zalloc(sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void changes_destroy(struct changes *c)
{
    if (c == NULL) return;
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

void changes_note(struct changes *c, int64_t t_min)
{
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = c->n; i > 0 && c->v[i - 1].t_min > t_min; i--)
        c->v[i - 1].t_min = t_min;
    pthread_mutex_unlock(&c->lock);
}

static uint64_t new_version(struct changes *c)
{
    uint64_t number = c->n == 0 ? 1 : c->v[c->n - 1].number + 1;
    if (c->n == VERSIONS_MAX) {
        memmove(c->v, c->v + VERSIONS_MAX / 2, VERSIONS_MAX / 2 * sizeof *c->v);
        c->n = VERSIONS_MAX / 2;
    }
    c->v[c->n++] = (struct version){number, INT64_MAX};
    return number;
}

uint64_t changes_version(struct changes *c)
{
    pthread_mutex_lock(&c->lock);
    bool untouched = c->n > 0 && c->v[c->n - 1].t_min == INT64_MAX;
    uint64_t number = untouched ? c->v[c->n - 1].number : new_version(c);
    pthread_mutex_unlock(&c->lock);
    return number;
}

int64_t changes_since(struct changes *c, uint64_t version)
{
    int64_t t = INT64_MIN;
    pthread_mutex_lock(&c->lock);
    if (c->n > 0 && version >= c->v[0].number && version <= c->v[c->n - 1].number)
        t = c->v[version - c->v[0].number].t_min; /* numbers follow each other */
    pthread_mutex_unlock(&c->lock);
    return t;
}
