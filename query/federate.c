/*
 * federate.c: /federate: the newest sample of each matching series, for another Prometheus to scrape.
 *
 * A series is in if it has a sample in the lookback window before now and the newest there is no stale
 * marker. Samples keep their timestamps. Rows come by metric name, one family a name; a series without
 * an `instance` label gets an empty one, so that the scraper does not put its own in its place.
 *
 * One thread a call; what it holds counts against the query's memory.
 */
#include "query/federate.h"

#include <stdlib.h>

#include "query/engine.h"
#include "query/value.h"
#include "storage/base/alloc.h"
#include "storage/base/map.h"
#include "storage/base/num.h"

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* The bytes of one UTF-8 character that begins with c. */
static size_t character_bytes(uint8_t c)
{
    if (c < 0xc0) return 1;
    return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

str federate_name(str name, bool utf8, struct arena *a)
{
    if (utf8 || metric_name_is_legacy(name)) return name;
    char *out = arena_alloc(a, name.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < name.n; i += character_bytes((uint8_t)name.p[i])) {
        str one = {name.p + i, 1};
        bool digit = one.p[0] >= '0' && one.p[0] <= '9' && i > 0;
        out[n++] = digit || metric_name_is_legacy(one) ? one.p[0] : '_';
    }
    return (str){out, n};
}

bool federate_begins_family(const struct federated *rows, size_t k)
{
    return k == 0 || !str_eq(rows[k].name, rows[k - 1].name) || (rows[k].hist.n > 0) != (rows[k - 1].hist.n > 0);
}

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void put_escaped(str s, struct buf *out)
{
    buf_u8(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '\n')
            buf_str(out, STR("\\n"));
        else if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else
            buf_u8(out, (uint8_t)c);
    }
    buf_u8(out, '"');
}

static void put_name(str name, bool legacy, struct buf *out)
{
    if (legacy)
        buf_str(out, name);
    else
        put_escaped(name, out);
}

static void put_pair(str name, str value, bool first, struct buf *out)
{
    if (!first) buf_u8(out, ',');
    put_name(name, label_name_is_legacy(name), out);
    buf_u8(out, '=');
    put_escaped(value, out);
}

static void put_text_row(const struct federated *row, bool utf8, struct arena *a, struct buf *out)
{
    str name = federate_name(row->name, utf8, a);
    bool legacy = metric_name_is_legacy(name), first = legacy;
    if (legacy) buf_str(out, name);
    buf_u8(out, '{');
    if (!legacy) put_escaped(name, out);
    for (uint32_t i = 0; i < row->labels.n; i++) {
        const struct label *l = &row->labels.v[i];
        if (str_eq(l->name, LABEL_NAME)) continue;
        put_pair(federate_name(l->name, utf8, a), l->value, first, out);
        first = false;
    }
    if (labels_get(&row->labels, STR("instance")).n == 0) put_pair(STR("instance"), (str){"", 0}, first, out);
    buf_str(out, STR("} "));
    char number[NUM_DOUBLE_MAX];
    buf_put(out, number, num_format_double_short(row->v, number));
    buf_printf(out, " %lld\n", (long long)row->t);
}

void federate_put_text(const struct federated *rows, size_t n, bool utf8, struct buf *out)
{
    struct arena arena = {0};
    for (size_t k = 0; k < n; k++) {
        if (rows[k].hist.n > 0) continue;
        arena_reset(&arena);
        if (federate_begins_family(rows, k)) {
            str name = federate_name(rows[k].name, utf8, &arena);
            buf_str(out, STR("# TYPE "));
            put_name(name, metric_name_is_legacy(name), out);
            buf_str(out, STR(" untyped\n"));
        }
        put_text_row(&rows[k], utf8, &arena, out);
    }
    arena_deinit(&arena);
}

/* ---- collecting ------------------------------------------------------------------------------------------------- */

struct federation {
    struct budget budget;
    struct arena arena;
    struct federated *v; /* heap; strings in the arena or with the selections */
    size_t n, cap;
    size_t held; /* bytes told to the budget */
    int64_t t_min, t_max;
    bool several; /* sets: a series may come twice */
    struct map seen;
    struct label_key all;
    struct selection **selections; /* one a set */
    uint32_t n_selections;
};

static err hold(struct federation *f)
{
    size_t bytes = f->arena.bytes + f->cap * sizeof *f->v;
    if (bytes <= f->held) return NULL;
    size_t more = bytes - f->held;
    f->held = bytes;
    return budget_hold(&f->budget, 0, more);
}

static err add_series(struct federation *f, struct reader *r, size_t i)
{
    struct samples s;
    struct federated row = {0};
    bool added = true;
    TRY(reader_samples(r, i, f->t_min, f->t_max, &s));
    TRY(budget_tick(&f->budget, s.n));
    if (s.n == 0 || is_stale_nan(s.v[s.n - 1])) return NULL;
    TRY(reader_labels(r, i, &f->arena, &row.labels));
    row.name = labels_get(&row.labels, LABEL_NAME);
    if (row.name.n == 0) return NULL;
    if (f->several) map_put(&f->seen, label_key_hash(&f->all, &row.labels), 0, &added);
    if (!added) return NULL;
    row.t = s.t[s.n - 1];
    row.v = s.v[s.n - 1];
    if (s.hist != NULL && s.hist[s.n - 1].n > 0) row.hist = arena_str(&f->arena, s.hist[s.n - 1]);
    if (f->n == f->cap) f->v = mem_grow(f->v, &f->cap, f->n + 1, sizeof *f->v);
    f->v[f->n++] = row;
    return hold(f);
}

static err collect_set(struct query_engine *q, struct federation *f, const struct match_set *set)
{
    struct select_options o = {.t_min = f->t_min, .t_max = f->t_max};
    struct selection *s;
    TRY(storage_select(q->o.db, set->m, set->n, &o, &s));
    f->selections[f->n_selections++] = s;
    struct reader *r = reader_create(s);
    err e = NULL;
    for (size_t i = 0; i < selection_count(s) && e == NULL; i++)
        e = add_series(f, r, i);
    reader_destroy(r);
    return e;
}

static int compare_rows(const void *a, const void *b)
{
    const struct federated *x = a, *y = b;
    int by_name = str_cmp(x->name, y->name);
    if (by_name != 0) return by_name;
    if ((x->hist.n > 0) != (y->hist.n > 0)) return x->hist.n > 0 ? 1 : -1;
    return labels_cmp(&x->labels, &y->labels);
}

err query_federate(struct query_engine *q, const struct federate_request *rq, struct buf *out)
{
    struct federation f = {.t_min = rq->now_ms - q->o.lookback_ms, .t_max = rq->now_ms};
    f.all = (struct label_key){.hash = q->hash, .except = true};
    f.several = rq->match->n > 1;
    f.selections = mem_alloc(rq->match->n * sizeof(struct selection *) + 1);
    budget_init(&f.budget, q->o.timeout_ms, q->o.max_samples, q->o.max_memory, rq->canceled);
    err e = NULL;
    for (uint32_t i = 0; i < rq->match->n; i++)
        TRY_OUT(collect_set(q, &f, &rq->match->sets[i]));
    if (f.n > 1) qsort(f.v, f.n, sizeof *f.v, compare_rows);
    if (rq->protobuf)
        e = federate_put_protobuf(f.v, f.n, rq->utf8, out);
    else
        federate_put_text(f.v, f.n, rq->utf8, out);
out:
    for (uint32_t i = 0; i < f.n_selections; i++)
        selection_destroy(f.selections[i]);
    mem_free(f.selections);
    map_deinit(&f.seen);
    arena_deinit(&f.arena);
    mem_free(f.v);
    return e;
}
