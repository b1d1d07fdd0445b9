/*
 * part_find.c: which series of a part satisfy all matchers.
 *
 * Each matcher becomes one set operation on the candidates: a matcher that an absent label can't satisfy
 * keeps the union of the sets of its values; one that an absent label does satisfy takes away the union
 * of the sets of the values it refuses. Cheap ones go first:
 *
 *   1. equality, and regexes that are a few literals: look-ups of their values
 *   2. regexes with a literal prefix: a range of values, each tried once
 *   3. the rest: all values of the label, each tried once
 *
 * When few candidates are left and a matcher of the third kind would walk many frames, the remaining matchers
 * are tried on the candidates' own labels instead. Every step stops at an empty set.
 */
#include "storage/base/alloc.h"
#include "storage/part_format.h"

#define FEW_CANDIDATES 1024 /* whose labels are read rather than a long list of values */
#define MANY_FRAMES 4       /* of postings of one label */

enum cost { COST_LOOKUP, COST_PREFIX, COST_SCAN, COSTS };

struct find {
    struct part_cursor *c;
    uint32_t n_series;
    struct postings *set; /* candidates so far */
};

/* What a walk over the values of one label collects. */
struct walk {
    const struct matcher *m;
    bool wanted; /* collect values that the matcher accepts (true) or refuses (false) */
    str prefix;  /* accepted values start with it */
    struct postings *into;
};

/* ---- values of one label ------------------------------------------------------------------------------------ */

static err find_symbol(struct find *f, str s, bool *found, uint32_t *symbol)
{
    return part_symbol_lower_bound(f->c, s, symbol, found);
}

static err add_set(struct find *f, const struct part_entry *it, struct postings *into)
{
    return part_cursor_blame(f->c, PART_FRAME_POSTINGS, it->frame, postings_decode_or(it->set, f->n_series, into));
}

/* Adds the series that have name="value". */
static err add_value(struct find *f, uint32_t name, str value, struct postings *into)
{
    bool found;
    uint32_t symbol;
    TRY(find_symbol(f, value, &found, &symbol));
    if (!found) return NULL;
    struct part_entry it = {0};
    err e = NULL;
    TRY_OUT(part_entry_seek(f->c, (struct part_key){name, symbol}, &it));
    if (!it.end && it.key.name == name && it.key.value == symbol) e = add_set(f, &it, into);
out:
    part_entry_close(&it);
    return e;
}

static err walk_values(struct find *f, uint32_t name, const struct walk *w)
{
    struct part_entry it = {0};
    bool equal;
    uint32_t from = 0;
    err e = NULL;
    if (w->prefix.n > 0) TRY(part_symbol_lower_bound(f->c, w->prefix, &from, &equal));
    TRY_OUT(part_entry_seek(f->c, (struct part_key){name, from}, &it));
    while (!it.end && it.key.name == name) {
        str value;
        bool matched;
        TRY_OUT(part_symbol(f->c, it.key.value, &value));
        if (!str_starts_with(value, w->prefix)) break;
        TRY_OUT(matcher_match(w->m, value, &matched));
        if (matched == w->wanted) TRY_OUT(add_set(f, &it, w->into));
        TRY_OUT(part_entry_next(&it));
    }
out:
    part_entry_close(&it);
    return e;
}

/* ---- one matcher -------------------------------------------------------------------------------------------- */

static bool is_negative(const struct matcher *m)
{
    return m->op == MATCH_NE || m->op == MATCH_NRE;
}

/* The values that a matcher names, if it names a few. */
static const str *literals_of(const struct matcher *m, size_t *n)
{
    if (m->re != NULL) return regex_literals(m->re, n);
    *n = m->value.n > 0; /* an empty value names all series without the label */
    return &m->value;
}

/* The sets to collect are those of named values, or within a prefix, only if no value beyond them is collected: if a
 * positive matcher refuses absent labels, or a negative one accepts them. */
static enum cost cost_of(const struct matcher *m)
{
    size_t n;
    if (is_negative(m) != matcher_matches_empty(m)) return COST_SCAN;
    literals_of(m, &n);
    if (n > 0) return COST_LOOKUP;
    return m->re != NULL && regex_prefix(m->re).n > 0 ? COST_PREFIX : COST_SCAN;
}

static err collect(struct find *f, const struct matcher *m, uint32_t name, struct postings *into)
{
    enum cost cost = cost_of(m);
    if (cost != COST_LOOKUP) {
        struct walk w = {m, !matcher_matches_empty(m), cost == COST_PREFIX ? regex_prefix(m->re) : (str){0}, into};
        return walk_values(f, name, &w);
    }
    size_t n;
    const str *values = literals_of(m, &n);
    for (size_t i = 0; i < n; i++)
        TRY(add_value(f, name, values[i], into));
    return NULL;
}

static err apply(struct find *f, const struct matcher *m)
{
    bool found;
    uint32_t name;
    err e = NULL;
    struct postings *values = postings_create();
    TRY_OUT(find_symbol(f, m->name, &found, &name));
    if (found) TRY_OUT(collect(f, m, name, values));
    if (matcher_matches_empty(m))
        postings_andnot(f->set, values);
    else
        postings_and(f->set, values);
out:
    postings_destroy(values);
    return e;
}

/* ---- few candidates ----------------------------------------------------------------------------------------- */

/* Postings frames that start with this label. */
static size_t frames_of_label(const struct part_index *ix, uint32_t name)
{
    size_t n = 0;
    for (size_t i = 0; i < ix->frames[PART_FRAME_POSTINGS].n; i++)
        n += ix->postings_first[i].name == name;
    return n;
}

/* True if it is cheaper to read the candidates' labels than to walk the values of this matcher's label. */
static err prefers_labels(struct find *f, const struct matcher *m, bool *yes)
{
    bool found;
    uint32_t name;
    *yes = false;
    if (postings_count(f->set) > FEW_CANDIDATES) return NULL;
    TRY(find_symbol(f, m->name, &found, &name));
    *yes = found && frames_of_label(f->c->ix, name) > MANY_FRAMES;
    return NULL;
}

/* One matcher against the labels of one series. */
static err try_labels(struct find *f, const struct matcher *m, const uint32_t *pairs, uint32_t n_pairs, bool *matched)
{
    for (uint32_t i = 0; i < n_pairs; i++) {
        str name, value;
        TRY(part_symbol(f->c, pairs[2 * i], &name));
        if (!str_eq(name, m->name)) continue;
        TRY(part_symbol(f->c, pairs[2 * i + 1], &value));
        return matcher_match(m, value, matched);
    }
    *matched = matcher_matches_empty(m);
    return NULL;
}

static err filter_by_labels(struct find *f, const struct matcher *m)
{
    uint32_t ids[FEW_CANDIDATES], n_kept = 0;
    size_t n = postings_list(f->set, ids, FEW_CANDIDATES);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *pairs;
        uint32_t n_pairs;
        bool matched;
        TRY(part_series_pairs(f->c, ids[i], &pairs, &n_pairs));
        TRY(try_labels(f, m, pairs, n_pairs, &matched));
        if (matched) ids[n_kept++] = ids[i];
    }
    postings_destroy(f->set);
    f->set = postings_of(ids, n_kept);
    return NULL;
}

/* ---- the whole ---------------------------------------------------------------------------------------------- */

static int64_t day_of(int64_t t)
{
    return t / PART_DAY_MS - (t % PART_DAY_MS < 0);
}

/* The series alive on the days that touch the range. */
static err start_with_alive(struct find *f, int64_t t_min, int64_t t_max)
{
    const struct part_footer *footer = &f->c->p->footer;
    uint32_t n_days = footer->n_frames[PART_FRAME_ALIVE];
    int64_t first = footer->alive_first_day, from = day_of(t_min), to = day_of(t_max);
    if (t_min > footer->meta.t_max || t_max < footer->meta.t_min || t_min > t_max) return NULL;
    if (from < first) from = first;
    if (to >= first + n_days) to = first + n_days - 1;
    if (n_days == 0 || to - from + 1 == n_days) {
        postings_destroy(f->set);
        f->set = postings_range(0, f->n_series);
        return NULL;
    }
    for (int64_t day = from; day <= to; day++) {
        const struct fcache_entry *e;
        uint32_t frame = (uint32_t)(day - first);
        TRY(part_cursor_hold(f->c, PART_FRAME_ALIVE, frame, &e));
        err bad = postings_decode_or((str){(const char *)e->data, e->n}, f->n_series, f->set);
        part_cursor_release(f->c, e);
        TRY(part_cursor_blame(f->c, PART_FRAME_ALIVE, frame, bad));
    }
    return NULL;
}

static err apply_all(struct find *f, const struct matcher *m, size_t n)
{
    for (enum cost cost = COST_LOOKUP; cost < COSTS; cost++) {
        for (size_t i = 0; i < n; i++) {
            if (cost_of(&m[i]) != cost) continue;
            if (postings_is_empty(f->set)) return NULL;
            bool by_labels = false;
            if (cost == COST_SCAN) TRY(prefers_labels(f, &m[i], &by_labels));
            TRY(by_labels ? filter_by_labels(f, &m[i]) : apply(f, &m[i]));
        }
    }
    return NULL;
}

err part_find(struct part_cursor *c, const struct matcher *m, size_t n, int64_t t_min, int64_t t_max,
              struct postings **out)
{
    TRY(part_cursor_index(c));
    struct find f = {c, (uint32_t)c->p->footer.meta.series, postings_create()};
    err e = start_with_alive(&f, t_min, t_max);
    if (e == NULL) e = apply_all(&f, m, n);
    if (e != NULL) {
        postings_destroy(f.set);
        return e;
    }
    *out = f.set;
    return NULL;
}
