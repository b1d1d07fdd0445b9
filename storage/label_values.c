/*
 * label_values.c: distinct label names and values over all series that match (storage_label_names, _values).
 *
 * Each part and head answers from its own dictionaries; the union is sorted. Without matchers a part
 * gives its list straight away; with them, or if the range covers only some of its days, the series
 * are found first. A part's answer is remembered (part_answer.c), unless it is large. Series that a delete took away
 * are left out one by one, which costs only while deletes are pending.
 */
#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/str_sort.h"
#include "storage/part_answer.h"
#include "storage/select_internal.h"

#define FEW_SERIES 8192    /* of a head: so many are looked at one by one */
#define REPEATS_MAX 65536u /* strings more than twice those that differ */

/* What was found, place by place. One place names a string once; that two places name it is seen by sorting. */
struct strings {
    struct arena arena;
    str *v;
    size_t n, cap;
    size_t differing; /* as of the last time that repeats were dropped */
};

static bool strings_add(void *arg, str s)
{
    struct strings *set = arg;
    if (set->n == set->cap) set->v = mem_grow(set->v, &set->cap, set->n + 1, sizeof *set->v);
    set->v[set->n++] = arena_str(&set->arena, s);
    return true;
}

static void strings_settle(struct strings *set)
{
    set->n = str_sort_unique(set->v, set->n);
    set->differing = set->n;
}

/* Between places: so that many places of the same strings take memory for about twice of them. */
static void strings_drop_repeats(struct strings *set)
{
    if (set->n < 2 * set->differing + REPEATS_MAX) return;
    struct arena old = set->arena;
    strings_settle(set);
    set->arena = (struct arena){0};
    for (size_t i = 0; i < set->n; i++)
        set->v[i] = arena_str(&set->arena, set->v[i]);
    arena_deinit(&old);
}

static void strings_emit(struct strings *set, storage_string_fn fn, void *arg)
{
    strings_settle(set);
    for (size_t i = 0; i < set->n; i++)
        if (!fn(arg, set->v[i])) break;
}

static void strings_deinit(struct strings *set)
{
    arena_deinit(&set->arena);
    mem_free(set->v);
}

/* What is asked: `name` for values of that label; name.n = 0 for the names themselves. */
struct question {
    struct db *db;
    struct view *view;
    str name;
    const struct matcher *m;
    size_t n;
    struct time_range range;
    struct strings *out;
    str text; /* of name and matchers, for part_answer */
};

/* ---- parts ------------------------------------------------------------------------------------------------------ */

/* Drops the series whose samples in the range are all deleted. */
static err drop_deleted(const struct question *q, size_t part, struct part_cursor *c, struct postings **found)
{
    uint64_t count = postings_count(*found);
    uint32_t *ids = mem_alloc(count * sizeof *ids + 1);
    postings_list(*found, ids, count);
    struct arena arena = {0};
    struct time_ranges deletes = {0};
    size_t kept = 0;
    err e = NULL;
    for (uint64_t i = 0; i < count; i++) {
        struct part_series s;
        struct labels ls;
        arena_reset(&arena);
        TRY_OUT(part_series(c, ids[i], &s));
        TRY_OUT(part_labels(c, s.pairs, s.n_pairs, &arena, &ls));
        TRY_OUT(part_deletes(q->view, part, &ls, &deletes));
        bool alive = false;
        for (uint32_t b = 0; b < s.n_blocks && !alive; b++)
            alive = s.blocks[b].t_min <= q->range.t_max && s.blocks[b].t_max >= q->range.t_min &&
                    !time_ranges_cover(&deletes, s.blocks[b].t_min, s.blocks[b].t_max);
        if (alive) ids[kept++] = ids[i];
    }
    postings_destroy(*found);
    *found = postings_of(ids, kept);
out:
    mem_free(ids);
    arena_deinit(&arena);
    time_ranges_deinit(&deletes);
    return e;
}

/* Adds what the part has to q->out, from its indexes. */
static err search_part(const struct question *q, size_t part, bool deletes)
{
    const struct part_meta *meta = part_meta(q->view->parts[part].part);
    bool all = !deletes && q->n == 0 && q->range.t_min <= meta->t_min && q->range.t_max >= meta->t_max;
    struct part_cursor *c = part_cursor_create(q->view->parts[part].part);
    struct postings *found = NULL;
    err e = NULL;
    if (!all) TRY_OUT(part_find(c, q->m, q->n, q->range.t_min, q->range.t_max, &found));
    if (deletes) TRY_OUT(drop_deleted(q, part, c, &found));
    if (found != NULL && postings_is_empty(found)) goto out;
    if (found != NULL && postings_count(found) == meta->series) { /* all of them: the dictionaries as they are */
        postings_destroy(found);
        found = NULL;
    }
    if (q->name.n == 0)
        e = part_label_names(c, found, strings_add, q->out);
    else
        e = part_label_values(c, q->name, found, strings_add, q->out);
out:
    postings_destroy(found);
    part_cursor_destroy(c);
    return e;
}

struct part_search {
    const struct question *q;
    size_t part;
};

/* part_answer_fn: strings with their lengths. */
static err find_strings(void *arg, struct buf *out, bool *small)
{
    *small = true; /* until the buffer says otherwise */
    const struct part_search *s = arg;
    struct strings own = {0};
    struct question q = *s->q;
    q.out = &own;
    err e = search_part(&q, s->part, false);
    strings_settle(&own); /* once, and not with every use of the answer */
    for (size_t i = 0; i < own.n && e == NULL; i++)
        buf_lenstr(out, own.v[i]);
    strings_deinit(&own);
    return e;
}

static err ask_part(const struct question *q, size_t part)
{
    struct part *p = q->view->parts[part].part;
    const struct part_meta *meta = part_meta(p);
    if (meta->t_min > q->range.t_max || meta->t_max < q->range.t_min) return NULL;
    if (part_has_deletes(q->view, part, q->range.t_min, q->range.t_max)) return search_part(q, part, true);
    struct part_search search = {q, part};
    enum part_question kind = q->name.n > 0 ? PART_ASKED_VALUES : PART_ASKED_NAMES;
    struct part_ask ask = {kind, q->text, q->range.t_min, q->range.t_max};
    struct part_answer answer;
    bool known;
    TRY(part_answer(p, &ask, find_strings, &search, &answer, &known));
    if (!known) return search_part(q, part, false);
    struct cursor strings = cursor_of(answer.bytes.p, answer.bytes.n);
    while (cursor_left(&strings) > 0)
        strings_add(q->out, cursor_lenstr(&strings));
    part_answer_done(&answer);
    return NULL;
}

/* ---- heads ------------------------------------------------------------------------------------------------------ */

struct head_question {
    const struct question *q;
    const struct head *h;
    const bool *matched; /* by handle, n_matched of them: which series count; NULL: all do */
    uint32_t n_matched;
};

static bool head_alive(const struct head_question *hq, uint32_t handle)
{
    return head_touches(hq->h, handle, hq->q->range.t_min, hq->q->range.t_max);
}

static bool emit_symbol(const struct head_question *hq, uint32_t symbol)
{
    const struct symbol *s = registry_symbol_at(hq->h->registry, symbol);
    return strings_add(hq->q->out, (str){s->p, s->n});
}

static bool any_alive(const struct head_question *hq, const uint32_t *handles, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (hq->matched != NULL && (handles[i] >= hq->n_matched || !hq->matched[handles[i]])) continue;
        if (head_alive(hq, handles[i])) return true;
    }
    return false;
}

static bool on_value(void *arg, uint32_t value, const uint32_t *handles, uint32_t n)
{
    const struct head_question *hq = arg;
    return !any_alive(hq, handles, n) || emit_symbol(hq, value);
}

/* False goes on to the next name. */
static bool on_name(void *arg, uint32_t name, const uint32_t *handles, uint32_t n)
{
    const struct head_question *hq = arg;
    if (!any_alive(hq, handles, n)) return true;
    emit_symbol(hq, name);
    return false;
}

/* Of one matching series: the names, or the value of the label asked for; each symbol once. */
static void emit_series(const struct head_question *hq, uint32_t handle, bool *seen)
{
    const struct registry *r = hq->h->registry;
    const struct series *s = registry_at(r, handle);
    const uint32_t *pairs = registry_pairs(r, s);
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        uint32_t wanted = hq->q->name.n == 0 ? pairs[2 * i] : pairs[2 * i + 1];
        if (seen[wanted]) continue;
        const struct symbol *name = registry_symbol_at(r, pairs[2 * i]);
        if (hq->q->name.n > 0 && !str_eq((str){name->p, name->n}, hq->q->name)) continue;
        seen[wanted] = true;
        emit_symbol(hq, wanted);
    }
}

/* From the lists of all names, or of the values of the one asked for. */
static void walk_lists(struct head_question *hq)
{
    if (hq->q->name.n == 0)
        registry_each_name(hq->h->registry, on_name, hq);
    else
        registry_each_value(hq->h->registry, hq->q->name, on_value, hq);
}

/* Of many series: lists are walked up to their first series that counts, which is less than to look at each series. */
static void ask_lists(struct head_question *hq, const uint32_t *handles, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (handles[i] >= hq->n_matched) hq->n_matched = handles[i] + 1;
    bool *matched = mem_zalloc(hq->n_matched + 1);
    for (size_t i = 0; i < n; i++)
        matched[handles[i]] = true;
    hq->matched = matched;
    walk_lists(hq);
    mem_free(matched);
}

/* Of few series: their own labels. */
static void ask_each(const struct head_question *hq, const uint32_t *handles, size_t n)
{
    const struct registry *r = hq->h->registry;
    uint32_t n_symbols = 0; /* one more than the highest that these series use */
    for (size_t i = 0; i < n; i++) {
        const struct series *s = registry_at(r, handles[i]);
        const uint32_t *pairs = registry_pairs(r, s);
        for (uint32_t k = 0; k < 2u * s->n_pairs; k++)
            if (pairs[k] >= n_symbols) n_symbols = pairs[k] + 1;
    }
    bool *seen = mem_zalloc(n_symbols + 1);
    for (size_t i = 0; i < n; i++)
        if (head_alive(hq, handles[i])) emit_series(hq, handles[i], seen);
    mem_free(seen);
}

static err ask_head(const struct question *q, const struct head *h)
{
    if (head_is_empty(h) || atomic_load(&h->t_min) > q->range.t_max || atomic_load(&h->t_max) < q->range.t_min)
        return NULL;
    struct head_question hq = {.q = q, .h = h};
    if (q->n == 0) {
        walk_lists(&hq);
        return NULL;
    }
    uint32_t *handles;
    size_t n;
    TRY(registry_select(h->registry, q->m, q->n, &handles, &n));
    if (n > FEW_SERIES)
        ask_lists(&hq, handles, n);
    else
        ask_each(&hq, handles, n);
    mem_free(handles);
    return NULL;
}

/* ---- both ------------------------------------------------------------------------------------------------------- */

static err ask_all(const struct question *q)
{
    if (q->range.t_min > q->range.t_max) return NULL;
    for (size_t i = 0; i < q->view->n_parts; i++) {
        TRY(ask_part(q, i));
        strings_drop_repeats(q->out);
    }
    for (size_t i = 0; i < q->view->n_heads; i++)
        TRY(ask_head(q, q->view->heads[i]));
    return NULL;
}

static err ask(struct db *db, str name, const struct matcher *m, size_t n, const struct select_options *o,
               storage_string_fn fn, void *arg)
{
    struct strings set = {0};
    struct question q = {.db = db, .view = db_view(db), .name = name, .m = m, .n = n, .range = select_range(db, o)};
    struct buf text = {0};
    buf_lenstr(&text, name);
    matchers_encode(m, n, &text);
    q.text = buf_as_str(&text);
    q.out = &set;
    err e = ask_all(&q);
    if (e == NULL) strings_emit(&set, fn, arg);
    buf_deinit(&text);
    strings_deinit(&set);
    view_unref(q.view);
    return e;
}

err storage_label_names(struct db *db, const struct matcher *m, size_t n, const struct select_options *o,
                        storage_string_fn fn, void *arg)
{
    return ask(db, (str){0}, m, n, o, fn, arg);
}

err storage_label_values(struct db *db, str name, const struct matcher *m, size_t n, const struct select_options *o,
                         storage_string_fn fn, void *arg)
{
    if (name.n == 0) return NULL; /* no label has an empty name */
    return ask(db, name, m, n, o, fn, arg);
}
