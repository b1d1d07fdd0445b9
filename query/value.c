/*
 * value.c: rows, columns and choices of labels.
 *
 * Pure helpers over memory of the caller's arenas; nothing here keeps state. Label sets are canonical
 * (sorted by name, no empty values) on the way in and on the way out. Any thread, one arena each.
 *
 * A label key's hash adds up the hashes of the chosen pairs, so it does not depend on their order;
 * 128 keyed bits stand for the pairs themselves, as series identities do in storage.
 */
#include "query/value.h"

#include <stdlib.h>

bool row_any(const struct row *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (row_has(r, i)) return true;
    return false;
}

void column_clear(double *v, uint32_t n)
{
    double none = no_sample();
    for (uint32_t i = 0; i < n; i++)
        v[i] = none;
}

err row_resolve(struct row *r)
{
    if (r->resolved) return NULL;
    TRY(reader_labels(r->reader, r->series, r->arena, &r->labels));
    r->resolved = true;
    return NULL;
}

err row_name(struct row *r, str *name)
{
    TRY(row_resolve(r));
    *name = labels_get(&r->labels, LABEL_NAME);
    return NULL;
}

/* ---- label keys --------------------------------------------------------------------------------- */

static int compare_strs(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

void label_key_init(struct label_key *k, const struct hash_key *hash, str *names, uint32_t n, bool except)
{
    if (n > 1) qsort(names, n, sizeof names[0], compare_strs);
    *k = (struct label_key){.hash = hash, .names = names, .n = n, .except = except};
}

static bool is_listed(const struct label_key *k, str name)
{
    for (uint32_t i = 0; i < k->n; i++)
        if (str_eq(k->names[i], name)) return true;
    return false;
}

bool label_key_has(const struct label_key *k, str name)
{
    return is_listed(k, name) != k->except;
}

struct hash128 label_key_hash(const struct label_key *k, const struct labels *ls)
{
    struct hash128 sum = {0, 0};
    if (!k->except && k->n == 0) return sum;
    for (uint32_t i = 0; i < ls->n; i++) {
        const struct label *l = &ls->v[i];
        if (!label_key_has(k, l->name)) continue;
        struct hash128 name = hash128(k->hash, l->name.p, l->name.n);
        sum = hash128_add(sum, hash128_pair(name, hash128(k->hash, l->value.p, l->value.n)));
    }
    return sum;
}

struct labels label_key_pick(const struct label_key *k, const struct labels *ls, struct arena *a)
{
    struct labels out = {arena_alloc(a, (ls->n + 1) * sizeof(struct label)), 0};
    for (uint32_t i = 0; i < ls->n; i++)
        if (label_key_has(k, ls->v[i].name)) out.v[out.n++] = ls->v[i];
    return out;
}

/* ---- changed label sets ------------------------------------------------------------------------- */

bool label_is_metadata(str name)
{
    return str_eq(name, LABEL_NAME) || str_eq(name, STR("__type__")) || str_eq(name, STR("__unit__"));
}

struct labels labels_drop_metadata(const struct labels *ls, struct arena *a)
{
    bool any = false;
    for (uint32_t i = 0; i < ls->n && !any; i++)
        any = label_is_metadata(ls->v[i].name);
    if (!any) return *ls;
    struct labels out = {arena_alloc(a, ls->n * sizeof(struct label)), 0};
    for (uint32_t i = 0; i < ls->n; i++)
        if (!label_is_metadata(ls->v[i].name)) out.v[out.n++] = ls->v[i];
    return out;
}

struct labels labels_set(const struct labels *ls, str name, str value, struct arena *a)
{
    struct labels out = {arena_alloc(a, (ls->n + 1) * sizeof(struct label)), 0};
    bool placed = value.n == 0;
    for (uint32_t i = 0; i < ls->n; i++) {
        int order = str_cmp(ls->v[i].name, name);
        if (order >= 0 && !placed) {
            out.v[out.n++] = (struct label){name, value};
            placed = true;
        }
        if (order != 0) out.v[out.n++] = ls->v[i];
    }
    if (!placed) out.v[out.n++] = (struct label){name, value};
    return out;
}

struct labels labels_keep(const struct labels *ls, struct arena *a)
{
    struct labels out = {arena_alloc(a, (ls->n + 1) * sizeof(struct label)), ls->n};
    for (uint32_t i = 0; i < ls->n; i++)
        out.v[i] = (struct label){arena_str(a, ls->v[i].name), arena_str(a, ls->v[i].value)};
    return out;
}
