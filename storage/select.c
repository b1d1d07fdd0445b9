/*
 * select.c: matchers and a time range → a consistent set of series (storage_select).
 *
 * Every part and head that overlaps the range is asked by its own index; series of the same identity
 * (labels_id) are one, with several sources in write order. With a single part or head there is
 * nothing to join and identities are not computed. Time is exact: a series is in only if one of its
 * blocks or samples touches the range and is not deleted whole.
 */
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/part_match.h"
#include "storage/select_internal.h"

struct time_range select_range(struct db *db, const struct select_options *o)
{
    int64_t start = db_retention_start(db);
    return (struct time_range){o->t_min > start ? o->t_min : start, o->t_max};
}

bool part_has_deletes(const struct view *v, size_t part, int64_t t_min, int64_t t_max)
{
    const struct part_meta *m = part_meta(v->parts[part].part);
    for (size_t i = 0; i < v->n_tombstones; i++) {
        const struct tombstone *t = v->tombstones[i];
        if (tombstone_concerns(t, m->seq_max, v->parts[part].clean_seq) && t->t_min <= t_max && t->t_max >= t_min)
            return true;
    }
    return false;
}

err part_deletes(const struct view *v, size_t part, const struct labels *ls, struct time_ranges *out)
{
    out->n = 0;
    const struct part_meta *m = part_meta(v->parts[part].part);
    for (size_t i = 0; i < v->n_tombstones; i++) {
        const struct tombstone *t = v->tombstones[i];
        if (!tombstone_concerns(t, m->seq_max, v->parts[part].clean_seq)) continue;
        bool matched;
        TRY(matchers_match(t->m, t->n, ls, &matched));
        if (matched) time_ranges_add(out, t->t_min, t->t_max);
    }
    return NULL;
}

err part_labels(struct part_cursor *c, const uint32_t *pairs, uint32_t n_pairs, struct arena *a, struct labels *out)
{
    *out = (struct labels){arena_alloc(a, n_pairs * sizeof(struct label) + 1), n_pairs};
    for (uint32_t i = 0; i < n_pairs; i++) {
        TRY(part_symbol(c, pairs[2 * i], &out->v[i].name));
        TRY(part_symbol(c, pairs[2 * i + 1], &out->v[i].value));
    }
    return NULL;
}

/* ---- collecting ------------------------------------------------------------------------------------------------- */

/* Found sources, each with the number of the series it belongs to. */
struct found {
    struct source source;
    uint32_t series;
};

struct collector {
    struct selection *s;
    const struct match_set *sets; /* a series must satisfy one of them */
    size_t n_sets;
    uint64_t max_series;
    bool join; /* several places: identities are needed */
    struct found *found;
    size_t n_found, found_cap;
    struct hash128 *ids; /* of the series, when joining */
    size_t ids_cap;
    uint32_t *slots; /* series number + 1 by identity */
    size_t n_slots;
    struct arena arena;
    struct time_ranges deletes;
    struct buf key; /* of the matchers, for part_match_find */
};

static void grow_slots(struct collector *c)
{
    mem_free(c->slots);
    c->n_slots = c->n_slots == 0 ? 1024 : c->n_slots * 2;
    c->slots = mem_zalloc(c->n_slots * sizeof *c->slots);
    for (uint32_t i = 0; i < c->s->n; i++) {
        size_t at = c->ids[i].lo & (c->n_slots - 1);
        while (c->slots[at] != 0)
            at = (at + 1) & (c->n_slots - 1);
        c->slots[at] = i + 1;
    }
}

static err new_series(struct collector *c, uint32_t *series)
{
    if (c->max_series > 0 && c->s->n >= c->max_series)
        return err_new(ERR_LIMIT, "the selector matches more than %llu series", (unsigned long long)c->max_series);
    *series = (uint32_t)c->s->n++;
    return NULL;
}

static err series_of_id(struct collector *c, struct hash128 id, uint32_t *series)
{
    if ((c->s->n + 1) * 2 > c->n_slots) grow_slots(c);
    size_t at = id.lo & (c->n_slots - 1);
    for (; c->slots[at] != 0; at = (at + 1) & (c->n_slots - 1)) {
        *series = c->slots[at] - 1;
        if (hash128_eq(c->ids[*series], id)) return NULL;
    }
    TRY(new_series(c, series));
    if (*series >= c->ids_cap) c->ids = mem_grow(c->ids, &c->ids_cap, *series + 1, sizeof *c->ids);
    c->ids[*series] = id;
    c->slots[at] = *series + 1;
    return NULL;
}

/* id: NULL when there is nothing to join. */
static err add_source(struct collector *c, struct source source, const struct hash128 *id)
{
    uint32_t series = 0;
    TRY(id == NULL ? new_series(c, &series) : series_of_id(c, *id, &series));
    if (c->n_found == c->found_cap) c->found = mem_grow(c->found, &c->found_cap, c->n_found + 1, sizeof *c->found);
    c->found[c->n_found++] = (struct found){source, series};
    return NULL;
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

/* Some block touches the range and is not deleted whole. */
static bool blocks_alive(const struct part_series *s, const struct selection *sel, const struct time_ranges *deletes)
{
    for (uint32_t i = 0; i < s->n_blocks; i++) {
        const struct part_block *b = &s->blocks[i];
        if (b->t_min > sel->t_max || b->t_max < sel->t_min) continue;
        if (deletes == NULL || !time_ranges_cover(deletes, b->t_min, b->t_max)) return true;
    }
    return false;
}

static err add_part_series(struct collector *c, struct part_cursor *cursor, size_t part, uint32_t id, bool deletes)
{
    struct part_series s;
    TRY(part_series(cursor, id, &s));
    if (deletes) {
        struct labels ls;
        arena_reset(&c->arena);
        TRY(part_labels(cursor, s.pairs, s.n_pairs, &c->arena, &ls));
        TRY(part_deletes(c->s->view, part, &ls, &c->deletes));
    }
    if (!blocks_alive(&s, c->s, deletes ? &c->deletes : NULL)) return NULL;
    struct hash128 identity;
    if (c->join) TRY(part_series_id(cursor, &s, &identity));
    return add_source(c, (struct source){(uint32_t)part, id}, c->join ? &identity : NULL);
}

/* True if the range holds the series' first or last sample: then it is in without a look at its blocks. */
static bool holds_an_end(const struct selection *s, const struct part_match *m)
{
    bool first = m->t_min >= s->t_min && m->t_min <= s->t_max;
    return first || (m->t_max >= s->t_min && m->t_max <= s->t_max);
}

static err add_match(struct collector *c, struct part_cursor **cursor, size_t part, const struct part_match *m)
{
    if (m->t_min > c->s->t_max || m->t_max < c->s->t_min) return NULL;
    if (holds_an_end(c->s, m))
        return add_source(c, (struct source){(uint32_t)part, (uint32_t)m->id}, c->join ? &m->identity : NULL);
    if (*cursor == NULL) *cursor = part_cursor_create(c->s->view->parts[part].part);
    return add_part_series(c, *cursor, part, (uint32_t)m->id, false);
}

/* The usual case: a selector of few series, no deletes. */
static err collect_matches(struct collector *c, size_t part, const struct part_matches *found)
{
    struct part_cursor *cursor = NULL;
    err e = NULL;
    for (size_t i = 0; i < found->n && e == NULL; i++)
        e = add_match(c, &cursor, part, &found->v[i]);
    part_cursor_destroy(cursor);
    return e;
}

/* The union of what the sets find. */
static err find_in_part(const struct collector *c, struct part_cursor *cursor, struct postings **out)
{
    const struct selection *s = c->s;
    *out = NULL;
    TRY(part_find(cursor, c->sets[0].m, c->sets[0].n, s->t_min, s->t_max, out));
    for (size_t i = 1; i < c->n_sets; i++) {
        struct postings *more;
        TRY(part_find(cursor, c->sets[i].m, c->sets[i].n, s->t_min, s->t_max, &more));
        postings_or(*out, more);
        postings_destroy(more);
    }
    return NULL;
}

static err collect_part(struct collector *c, size_t part)
{
    struct selection *s = c->s;
    const struct part_meta *meta = part_meta(s->view->parts[part].part);
    bool deletes = part_has_deletes(s->view, part, s->t_min, s->t_max);
    bool known = false;
    struct part_matches matches;
    if (!deletes && c->n_sets == 1)
        TRY(part_match_find(s->view->parts[part].part, c->sets[0].m, c->sets[0].n, buf_as_str(&c->key), s->t_min,
                            s->t_max, &matches, &known));
    if (known) {
        err bad = collect_matches(c, part, &matches);
        part_match_done(&matches);
        return bad;
    }
    bool whole = !deletes && !c->join && s->t_min <= meta->t_min && s->t_max >= meta->t_max;
    struct part_cursor *cursor = part_cursor_create(s->view->parts[part].part);
    struct postings *found = NULL;
    uint32_t *ids = NULL;
    err e = NULL;
    TRY_OUT(find_in_part(c, cursor, &found));
    uint64_t count = postings_count(found);
    ids = mem_alloc(count * sizeof *ids + 1);
    postings_list(found, ids, count);
    for (uint64_t i = 0; i < count; i++) {
        if (whole)
            TRY_OUT(add_source(c, (struct source){(uint32_t)part, ids[i]}, NULL));
        else
            TRY_OUT(add_part_series(c, cursor, part, ids[i], deletes));
    }
out:
    mem_free(ids);
    postings_destroy(found);
    part_cursor_destroy(cursor);
    return e;
}

/* ---- heads ------------------------------------------------------------------------------------------------------ */

static bool head_overlaps(const struct head *h, const struct selection *s)
{
    return !head_is_empty(h) && atomic_load(&h->t_min) <= s->t_max && atomic_load(&h->t_max) >= s->t_min;
}

static int compare_handles(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sorts and drops repeats; how many are left. */
static size_t unite(uint32_t *handles, size_t n)
{
    size_t kept = 0;
    if (n > 0) qsort(handles, n, sizeof *handles, compare_handles);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || handles[i] != handles[i - 1]) handles[kept++] = handles[i];
    return kept;
}

/* The union of what the sets find; *out is heap memory, also after an error. */
static err find_in_registry(const struct collector *c, struct registry *r, uint32_t **out, size_t *n)
{
    *out = NULL;
    *n = 0;
    if (c->n_sets == 1) return registry_select(r, c->sets[0].m, c->sets[0].n, out, n);
    for (size_t i = 0; i < c->n_sets; i++) {
        uint32_t *more;
        size_t n_more;
        TRY(registry_select(r, c->sets[i].m, c->sets[i].n, &more, &n_more));
        *out = mem_realloc(*out, (*n + n_more) * sizeof **out + 1);
        if (n_more > 0) memcpy(*out + *n, more, n_more * sizeof **out);
        *n += n_more;
        mem_free(more);
    }
    *n = unite(*out, *n);
    return NULL;
}

static err collect_head(struct collector *c, size_t head)
{
    struct selection *s = c->s;
    const struct head *h = s->view->heads[head];
    uint32_t *handles;
    size_t count;
    err e = NULL;
    TRY_OUT(find_in_registry(c, h->registry, &handles, &count));
    bool whole = s->t_min <= atomic_load(&h->t_min) && s->t_max >= atomic_load(&h->t_max);
    for (size_t i = 0; i < count; i++) {
        bool alive = whole ? head_has(h, handles[i]) : head_touches(h, handles[i], s->t_min, s->t_max);
        if (!alive) continue;
        struct hash128 id;
        if (c->join) id = registry_id(h->registry, handles[i]);
        struct source source = {(uint32_t)(s->view->n_parts + head), handles[i]};
        TRY_OUT(add_source(c, source, c->join ? &id : NULL));
    }
out:
    mem_free(handles);
    return e;
}

/* ---- joining ---------------------------------------------------------------------------------------------------- */

/* Groups the sources by series, keeping the order in which they were found: parts by write order, then heads. */
static void group_sources(struct collector *c)
{
    struct selection *s = c->s;
    s->first = mem_zalloc((s->n + 2) * sizeof *s->first);
    s->sources = mem_alloc(c->n_found * sizeof *s->sources + 1);
    for (size_t i = 0; i < c->n_found; i++)
        s->first[c->found[i].series + 2]++;
    for (size_t i = 2; i < s->n + 2; i++)
        s->first[i] += s->first[i - 1];
    for (size_t i = 0; i < c->n_found; i++)
        s->sources[s->first[c->found[i].series + 1]++] = c->found[i].source;
}

static bool part_overlaps(const struct view *v, size_t i, const struct selection *s)
{
    const struct part_meta *m = part_meta(v->parts[i].part);
    return m->t_min <= s->t_max && m->t_max >= s->t_min;
}

static err collect_all(struct collector *c)
{
    struct selection *s = c->s;
    const struct view *v = s->view;
    size_t places = 0;
    for (size_t i = 0; i < v->n_parts; i++)
        places += part_overlaps(v, i, s);
    for (size_t i = 0; i < v->n_heads; i++)
        places += head_overlaps(v->heads[i], s);
    c->join = places > 1;
    for (size_t i = 0; i < v->n_parts; i++)
        if (part_overlaps(v, i, s)) TRY(collect_part(c, i));
    for (size_t i = 0; i < v->n_heads; i++)
        if (head_overlaps(v->heads[i], s)) TRY(collect_head(c, i));
    return NULL;
}

err storage_select_any(struct db *db, const struct match_set *sets, size_t n, const struct select_options *o,
                       struct selection **out)
{
    struct time_range range = select_range(db, o);
    struct selection *s = mem_zalloc(sizeof *s);
    s->db = db;
    s->view = db_view(db);
    s->t_min = range.t_min;
    s->t_max = range.t_max;
    struct collector c = {.s = s, .sets = sets, .n_sets = n, .max_series = o->max_series};
    if (n == 1) matchers_encode(sets[0].m, sets[0].n, &c.key);
    err e = n > 0 && s->t_min <= s->t_max ? collect_all(&c) : NULL;
    if (e == NULL) {
        group_sources(&c);
        *out = s;
    } else {
        selection_destroy(s);
        *out = NULL;
    }
    mem_free(c.found);
    mem_free(c.ids);
    mem_free(c.slots);
    arena_deinit(&c.arena);
    time_ranges_deinit(&c.deletes);
    buf_deinit(&c.key);
    return e;
}

err storage_select(struct db *db, const struct matcher *m, size_t n, const struct select_options *o,
                   struct selection **out)
{
    struct match_set set = {(struct matcher *)(uintptr_t)m, (uint32_t)n}; /* it is only read */
    return storage_select_any(db, &set, 1, o, out);
}

void selection_destroy(struct selection *s)
{
    if (s == NULL) return;
    view_unref(s->view);
    mem_free(s->first);
    mem_free(s->sources);
    mem_free(s);
}

size_t selection_count(const struct selection *s)
{
    return s->n;
}
