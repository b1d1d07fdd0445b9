/*
 * series.c: the registry of live series (series.h).
 *
 *   aliases   dense, in order of arrival: {hash, series, successor}, 24 bytes each; an index of slots over them
 *   series    dense, by handle: where its pairs are
 *   pairs     symbol numbers (name, value), sorted by name; a series' pairs are contiguous
 *   lists     one a (name, value): handles, increasing: the index that matchers use
 *   names     one a label name: the lists of its values, in order of appearance
 *
 * Senders repeat their order, so aliases that arrive together lie together and the successor guess
 * touches memory in sequence. All but the guess is warm or cold code.
 */
#include <stdlib.h>

#include "storage/base/limits.h"
#include "storage/series_internal.h"

#define FIRST_SLOTS 4096

#define FIRST_SLOTS 4096

struct registry *registry_create(const struct hash_key *key)
{
    struct registry *r = mem_zalloc(sizeof *r);
    atomic_init(&r->refs, 1);
    pthread_rwlock_init(&r->lock, NULL);
    symbols_init(&r->symbols, key);
    pages_init(&r->aliases, sizeof(struct alias));
    pages_init(&r->series, sizeof(struct series));
    pages_init(&r->pairs, sizeof(uint32_t));
    pages_init(&r->lists, sizeof(struct value_list));
    pages_init(&r->names, sizeof(struct name_values));
    r->n_slots = FIRST_SLOTS;
    r->slots = mem_zalloc(r->n_slots * sizeof *r->slots);
    return r;
}

struct registry *registry_ref(struct registry *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void registry_unref(struct registry *r)
{
    if (r == NULL || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1) return;
    for (uint32_t i = 0; i < r->n_lists; i++)
        mem_free(((struct value_list *)pages_at(&r->lists, i))->handles);
    for (uint32_t i = 0; i < r->n_names; i++)
        mem_free(((struct name_values *)pages_at(&r->names, i))->lists);
    symbols_deinit(&r->symbols);
    pages_deinit(&r->aliases);
    pages_deinit(&r->series);
    pages_deinit(&r->pairs);
    pages_deinit(&r->lists);
    pages_deinit(&r->names);
    map_deinit(&r->by_name);
    map_deinit(&r->by_pair);
    mem_free(r->slots);
    mem_free(r->order_series);
    mem_free(r->order_symbols);
    pthread_rwlock_destroy(&r->lock);
    mem_free(r);
}

/* ---- aliases ---------------------------------------------------------------------------------------------------- */

static struct alias *alias_at(const struct registry *r, uint32_t number)
{
    return pages_at(&r->aliases, number);
}

static uint32_t probe(const struct registry *r, struct hash128 hash)
{
    size_t mask = r->n_slots - 1;
    for (size_t i = hash.lo & mask;; i = (i + 1) & mask) {
        uint32_t number = r->slots[i];
        if (number == 0) return ALIAS_NONE;
        if (hash128_eq(alias_at(r, number - 1)->hash, hash)) return number - 1;
    }
}

uint32_t registry_find(struct registry *r, struct hash128 alias, uint32_t previous)
{
    if (previous == ALIAS_NONE) return probe(r, alias);
    struct alias *before = alias_at(r, previous);
    if (before->next < r->n_aliases && hash128_eq(alias_at(r, before->next)->hash, alias)) return before->next;
    uint32_t found = probe(r, alias);
    if (found != ALIAS_NONE) before->next = found;
    return found;
}

uint32_t registry_alias_series(const struct registry *r, uint32_t alias)
{
    return alias_at(r, alias)->series;
}

static void slot_insert(struct registry *r, uint32_t number)
{
    size_t mask = r->n_slots - 1;
    size_t i = alias_at(r, number)->hash.lo & mask;
    while (r->slots[i] != 0)
        i = (i + 1) & mask;
    r->slots[i] = number + 1;
}

static uint32_t add_alias(struct registry *r, struct hash128 hash, uint32_t series)
{
    uint32_t number = r->n_aliases;
    struct alias *at = pages_make(&r->aliases, number);
    *at = (struct alias){.hash = hash, .series = series, .next = number + 1};
    r->n_aliases++;
    if ((size_t)r->n_aliases * 8 > r->n_slots * 5) {
        mem_free(r->slots);
        r->n_slots *= 2;
        r->slots = mem_zalloc(r->n_slots * sizeof *r->slots);
        for (uint32_t i = 0; i < number; i++)
            slot_insert(r, i);
    }
    slot_insert(r, number);
    return number;
}

/* ---- series and their index ------------------------------------------------------------------------------------- */

static struct hash128 number_key(uint32_t a, uint32_t b)
{
    uint64_t x = ((uint64_t)a << 32 | b) + 1;
    x *= UINT64_C(0x9e3779b97f4a7c15);
    return (struct hash128){x ^ (x >> 29), (uint64_t)a << 32 | b};
}

static struct value_list *list_of(struct registry *r, uint32_t name, uint32_t value)
{
    bool added;
    uint64_t *list = map_put(&r->by_pair, number_key(name, value), r->n_lists, &added);
    if (!added) return pages_at(&r->lists, (uint32_t)*list);

    struct value_list *at = pages_make(&r->lists, r->n_lists);
    *at = (struct value_list){.value = value};
    uint64_t *names = map_put(&r->by_name, number_key(name, 0), r->n_names, &added);
    if (added) *(struct name_values *)pages_make(&r->names, r->n_names++) = (struct name_values){.name = name};
    struct name_values *of_name = pages_at(&r->names, (uint32_t)*names);
    if (of_name->n == of_name->cap)
        of_name->lists = mem_grow(of_name->lists, &of_name->cap, of_name->n + 1, sizeof *of_name->lists);
    of_name->lists[of_name->n++] = r->n_lists++;
    return at;
}

static void list_add(struct registry *r, struct value_list *list, uint32_t handle)
{
    if (list->n == list->cap) {
        uint32_t cap = list->cap ? list->cap + list->cap / 2 + 1 : 1;
        list->handles = mem_realloc(list->handles, cap * sizeof *list->handles);
        r->list_bytes += (cap - list->cap) * sizeof *list->handles;
        list->cap = cap;
    }
    list->handles[list->n++] = handle;
}

/* Room for n contiguous entries of pairs; what is left of a page that is too small stays unused. */
static uint32_t pairs_reserve(struct registry *r, uint32_t n)
{
    uint32_t left = PAGE_ELEMENTS - (r->n_pairs & (PAGE_ELEMENTS - 1));
    if (left < n) r->n_pairs += left;
    uint32_t at = r->n_pairs;
    r->n_pairs += n;
    return at;
}

static_assert(LIMIT_LABELS * 2 <= PAGE_ELEMENTS, "the pairs of a series fit a page");

static struct hash128 pairs_id(const struct registry *r, const uint32_t *pairs, uint32_t n_pairs)
{
    struct hash128 id = {0, 0};
    for (uint32_t i = 0; i < n_pairs; i++)
        id = hash128_add(id, hash128_pair(symbols_at(&r->symbols, pairs[2 * i])->hash,
                                          symbols_at(&r->symbols, pairs[2 * i + 1])->hash));
    return id;
}

static uint32_t add_series(struct registry *r, const uint32_t *pairs, uint32_t n_pairs)
{
    uint32_t handle = atomic_load_explicit(&r->n_series, memory_order_relaxed);
    check(handle != SERIES_NONE);
    struct series *s = pages_make(&r->series, handle);
    *s = (struct series){.pairs_at = pairs_reserve(r, 2 * n_pairs), .n_pairs = (uint16_t)n_pairs};
    if (n_pairs > 0) memcpy(pages_make(&r->pairs, s->pairs_at), pairs, 2 * n_pairs * sizeof *pairs);
    for (uint32_t i = 0; i < n_pairs; i++)
        list_add(r, list_of(r, pairs[2 * i], pairs[2 * i + 1]), handle);
    atomic_store_explicit(&r->n_series, handle + 1, memory_order_release);
    return handle;
}

static uint32_t add_pairs_locked(struct registry *r, const uint32_t *pairs, uint32_t n_pairs)
{
    struct hash128 id = pairs_id(r, pairs, n_pairs);
    uint32_t known = probe(r, id);
    if (known != ALIAS_NONE) return known;
    return add_alias(r, id, add_series(r, pairs, n_pairs));
}

uint32_t registry_add_pairs(struct registry *r, const uint32_t *pairs, uint32_t n_pairs)
{
    pthread_rwlock_wrlock(&r->lock);
    uint32_t alias = add_pairs_locked(r, pairs, n_pairs);
    pthread_rwlock_unlock(&r->lock);
    return alias;
}

uint32_t registry_symbol(struct registry *r, str text)
{
    pthread_rwlock_wrlock(&r->lock);
    uint32_t symbol = symbols_intern(&r->symbols, text);
    pthread_rwlock_unlock(&r->lock);
    return symbol;
}

uint32_t registry_add(struct registry *r, struct hash128 alias, const struct labels *ls)
{
    uint32_t pairs[2 * LIMIT_LABELS];
    check(ls->n <= LIMIT_LABELS);
    pthread_rwlock_wrlock(&r->lock);
    for (uint32_t i = 0; i < ls->n; i++) {
        pairs[2 * i] = symbols_intern(&r->symbols, ls->v[i].name);
        pairs[2 * i + 1] = symbols_intern(&r->symbols, ls->v[i].value);
    }
    uint32_t identity = add_pairs_locked(r, pairs, ls->n);
    uint32_t number =
        hash128_eq(alias_at(r, identity)->hash, alias) ? identity : add_alias(r, alias, alias_at(r, identity)->series);
    pthread_rwlock_unlock(&r->lock);
    return number;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

uint32_t registry_count(const struct registry *r)
{
    return atomic_load_explicit(&r->n_series, memory_order_acquire);
}

uint32_t registry_symbols(const struct registry *r)
{
    return r->symbols.n;
}

struct series *registry_at(const struct registry *r, uint32_t handle)
{
    return pages_at(&r->series, handle);
}

const uint32_t *registry_pairs(const struct registry *r, const struct series *s)
{
    return pages_at(&r->pairs, s->pairs_at);
}

struct symbol *registry_symbol_at(const struct registry *r, uint32_t symbol)
{
    return symbols_at(&r->symbols, symbol);
}

uint32_t registry_find_symbol(struct registry *r, str text)
{
    pthread_rwlock_rdlock(&r->lock);
    uint32_t symbol = symbols_find(&r->symbols, text);
    pthread_rwlock_unlock(&r->lock);
    return symbol;
}

struct labels registry_labels(const struct registry *r, uint32_t handle, struct arena *a)
{
    const struct series *s = registry_at(r, handle);
    const uint32_t *pairs = registry_pairs(r, s);
    struct labels ls = {arena_alloc(a, s->n_pairs * sizeof(struct label) + 1), s->n_pairs};
    for (uint32_t i = 0; i < ls.n; i++)
        ls.v[i] = (struct label){symbols_str(&r->symbols, pairs[2 * i]), symbols_str(&r->symbols, pairs[2 * i + 1])};
    return ls;
}

struct hash128 registry_id(const struct registry *r, uint32_t handle)
{
    const struct series *s = registry_at(r, handle);
    return pairs_id(r, registry_pairs(r, s), s->n_pairs);
}

size_t registry_bytes(const struct registry *r)
{
    return symbols_bytes(&r->symbols) + r->aliases.bytes + r->series.bytes + r->pairs.bytes + r->lists.bytes +
           r->names.bytes + r->list_bytes + r->n_slots * sizeof *r->slots +
           (r->by_pair.cap + r->by_name.cap) * sizeof(struct map_slot);
}

void registry_each_value(struct registry *r, str name, registry_value_fn fn, void *arg)
{
    pthread_rwlock_rdlock(&r->lock);
    uint32_t symbol = symbols_find(&r->symbols, name);
    uint64_t *number = symbol == SYMBOL_NONE ? NULL : map_get(&r->by_name, number_key(symbol, 0));
    if (number != NULL) {
        const struct name_values *values = pages_at(&r->names, (uint32_t)*number);
        for (size_t i = 0; i < values->n; i++) {
            const struct value_list *list = pages_at(&r->lists, values->lists[i]);
            if (!fn(arg, list->value, list->handles, list->n)) break;
        }
    }
    pthread_rwlock_unlock(&r->lock);
}

void registry_each_name(struct registry *r, registry_name_fn fn, void *arg)
{
    pthread_rwlock_rdlock(&r->lock);
    for (uint32_t k = 0; k < r->n_names; k++) {
        const struct name_values *values = pages_at(&r->names, k);
        for (size_t i = 0; i < values->n; i++) {
            const struct value_list *list = pages_at(&r->lists, values->lists[i]);
            if (!fn(arg, values->name, list->handles, list->n)) break;
        }
    }
    pthread_rwlock_unlock(&r->lock);
}

bool registry_walk(struct registry *r, struct registry_walk *w, size_t work, registry_pair_fn fn, void *arg)
{
    size_t done = 0;
    pthread_rwlock_rdlock(&r->lock);
    while (w->name < r->n_names && done < work) {
        const struct name_values *values = pages_at(&r->names, w->name);
        for (; w->value < values->n && done < work; w->value++) {
            const struct value_list *list = pages_at(&r->lists, values->lists[w->value]);
            done += 1 + fn(arg, values->name, list->value, list->handles, list->n);
        }
        if (w->value < values->n) break;
        w->name++;
        w->value = 0;
    }
    bool more = w->name < r->n_names;
    pthread_rwlock_unlock(&r->lock);
    return more;
}

/* ---- matchers → handles ----------------------------------------------------------------------------------------- */

struct handle_set {
    uint32_t *v;
    size_t n, cap;
};

static void handles_append(struct handle_set *set, const uint32_t *handles, size_t n)
{
    if (set->n + n > set->cap) set->v = mem_grow(set->v, &set->cap, set->n + n, sizeof *set->v);
    if (n > 0) memcpy(set->v + set->n, handles, n * sizeof *handles);
    set->n += n;
}

static const struct value_list *find_list(const struct registry *r, str name, str value)
{
    uint32_t n = symbols_find(&r->symbols, name), v = symbols_find(&r->symbols, value);
    if (n == SYMBOL_NONE || v == SYMBOL_NONE) return NULL;
    uint64_t *number = map_get(&r->by_pair, number_key(n, v));
    return number == NULL ? NULL : pages_at(&r->lists, (uint32_t)*number);
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* All series with a value that the matcher admits; the matcher does not admit the empty value. */
static err union_of_values(const struct registry *r, const struct matcher *m, struct handle_set *out)
{
    size_t n_literals = 0, lists = 0;
    const str *literals = m->op == MATCH_RE ? regex_literals(m->re, &n_literals) : NULL;
    if (m->op == MATCH_EQ) {
        literals = &m->value;
        n_literals = 1;
    }
    for (size_t i = 0; i < n_literals; i++) {
        const struct value_list *list = find_list(r, m->name, literals[i]);
        if (list == NULL) continue;
        handles_append(out, list->handles, list->n);
        lists++;
    }
    uint32_t name = symbols_find(&r->symbols, m->name);
    uint64_t *number = n_literals > 0 || name == SYMBOL_NONE ? NULL : map_get(&r->by_name, number_key(name, 0));
    const struct name_values *values = number == NULL ? NULL : pages_at(&r->names, (uint32_t)*number);
    for (size_t i = 0; values != NULL && i < values->n; i++) {
        const struct value_list *list = pages_at(&r->lists, values->lists[i]);
        bool matched;
        TRY(matcher_match(m, symbols_str(&r->symbols, list->value), &matched));
        if (!matched) continue;
        handles_append(out, list->handles, list->n);
        lists++;
    }
    if (lists > 1) qsort(out->v, out->n, sizeof *out->v, compare_u32);
    return NULL;
}

/* Keeps the handles whose value of the label is admitted; each distinct value is matched once. */
static err filter_by_value(const struct registry *r, const struct matcher *m, struct handle_set *set)
{
    enum { UNKNOWN, YES, NO };
    uint32_t name = symbols_find(&r->symbols, m->name);
    bool empty = matcher_matches_empty(m);
    uint8_t *memo = mem_zalloc(r->symbols.n + 1);
    size_t kept = 0;
    err e = NULL;
    for (size_t i = 0; i < set->n; i++) {
        const struct series *s = registry_at(r, set->v[i]);
        const uint32_t *pairs = registry_pairs(r, s);
        bool admitted = empty;
        for (uint32_t k = 0; k < s->n_pairs; k++) {
            if (pairs[2 * k] != name) continue;
            uint32_t value = pairs[2 * k + 1];
            if (memo[value] == UNKNOWN) {
                TRY_OUT(matcher_match(m, symbols_str(&r->symbols, value), &admitted));
                memo[value] = admitted ? YES : NO;
            }
            admitted = memo[value] == YES;
            break;
        }
        if (admitted) set->v[kept++] = set->v[i];
    }
    set->n = kept;
out:
    mem_free(memo);
    return e;
}

static void intersect(struct handle_set *set, const uint32_t *other, size_t n)
{
    size_t kept = 0, j = 0;
    for (size_t i = 0; i < set->n; i++) {
        size_t step = 1; /* gallop: lists differ much in length */
        while (j + step < n && other[j + step] < set->v[i]) {
            j += step;
            step *= 2;
        }
        while (j < n && other[j] < set->v[i])
            j++;
        if (j == n) break;
        if (other[j] == set->v[i]) set->v[kept++] = set->v[i];
    }
    set->n = kept;
}

/* The equality matcher with the shortest list begins; n if there is none. *none: one of them has no series at all. */
static size_t shortest_equality(const struct registry *r, const struct matcher *m, size_t n, bool *none)
{
    size_t best = n;
    uint32_t best_n = UINT32_MAX;
    for (size_t i = 0; i < n && !*none; i++) {
        if (m[i].op != MATCH_EQ || m[i].value.n == 0) continue;
        const struct value_list *list = find_list(r, m[i].name, m[i].value);
        if (list == NULL) *none = true;
        if (list != NULL && list->n < best_n) {
            best = i;
            best_n = list->n;
        }
    }
    return best;
}

static err select_locked(struct registry *r, const struct matcher *m, size_t n, struct handle_set *set)
{
    bool none = false;
    size_t first = shortest_equality(r, m, n, &none);
    if (none) return NULL;
    for (size_t i = 0; first == n && i < n; i++)
        if (m[i].op == MATCH_RE && !matcher_matches_empty(&m[i])) first = i;
    if (first < n) {
        TRY(union_of_values(r, &m[first], set));
    } else {
        uint32_t all = registry_count(r);
        for (uint32_t h = 0; h < all; h++)
            handles_append(set, &h, 1);
    }
    for (size_t i = 0; i < n && set->n > 0; i++) {
        if (i == first) continue;
        const struct value_list *list =
            m[i].op == MATCH_EQ && m[i].value.n > 0 ? find_list(r, m[i].name, m[i].value) : NULL;
        if (list != NULL && list->n / 16 < set->n)
            intersect(set, list->handles, list->n);
        else
            TRY(filter_by_value(r, &m[i], set));
    }
    return NULL;
}

err registry_select(struct registry *r, const struct matcher *m, size_t n, uint32_t **out, size_t *n_out)
{
    struct handle_set set = {0};
    pthread_rwlock_rdlock(&r->lock);
    err e = select_locked(r, m, n, &set);
    pthread_rwlock_unlock(&r->lock);
    if (e != NULL) {
        mem_free(set.v);
        set = (struct handle_set){0};
    }
    *out = set.v;
    *n_out = set.n;
    return e;
}
