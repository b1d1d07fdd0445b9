/*
 * group.c: the groups of an aggregation.
 *
 * A group is known by the keyed 128-bit hash of its labels; its labels are copied once, when the group
 * is new. by() without labels needs no labels at all: rows are not even resolved. Memory is the
 * query's arena, the map's slots are heap.
 */
#include "query/group.h"

void grouping_init(struct grouping *g, struct exec *x, const struct expr *aggregate, str extra)
{
    uint32_t n = aggregate->aggregate.n_grouping;
    str *names = arena_alloc(x->arena, (n + 2) * sizeof *names);
    for (uint32_t i = 0; i < n; i++)
        names[i] = aggregate->aggregate.grouping[i];
    if (aggregate->aggregate.without)
        names[n++] = LABEL_NAME;
    else if (extra.n)
        names[n++] = extra;
    *g = (struct grouping){.x = x};
    label_key_init(&g->key, x->hash, names, n, aggregate->aggregate.without);
}

void grouping_deinit(struct grouping *g)
{
    map_deinit(&g->numbers);
}

static void keep_labels(struct grouping *g, const struct labels *ls)
{
    if (g->n == g->cap) {
        size_t cap = g->cap ? g->cap * 2 : 16;
        struct labels *v = arena_alloc(g->x->arena, cap * sizeof *v);
        if (g->n) memcpy(v, g->labels, g->n * sizeof *v);
        g->labels = v;
        g->cap = cap;
    }
    struct labels chosen = label_key_pick(&g->key, ls, g->x->arena);
    g->labels[g->n++] = labels_keep(&chosen, g->x->arena);
}

size_t grouping_of(struct grouping *g, const struct labels *ls, bool *added)
{
    uint64_t number = *map_put(&g->numbers, label_key_hash(&g->key, ls), g->n, added);
    if (*added) keep_labels(g, ls);
    return number;
}

err grouping_find(struct grouping *g, struct row *row, size_t *number, bool *added)
{
    bool needs_labels = g->key.except || g->key.n > 0;
    if (needs_labels) TRY(row_resolve(row));
    struct labels none = {0};
    *number = grouping_of(g, needs_labels ? &row->labels : &none, added);
    return NULL;
}
