/*
 * test_part.c: part files against a plain model: what is written comes back bit for bit, matchers find what
 * they should, label listings are right, damage is reported and never more than that.
 */
#include "tests/unit/storage/part_model.h"

#include "storage/matcher.h"
#include "storage/part_format.h"
#include "tests/sim/sim_env.h"

#include <errno.h>

static struct part *open_part(struct model_room *room)
{
    struct part *p;
    assert_ok(part_open(room->env, room->path, &room->key, room->cache, &p));
    return p;
}

static struct part_meta new_meta(uint64_t id)
{
    return (struct part_meta){.id = id, .partition = MODEL_MONTH, .level = 2, .seq_min = 10, .seq_max = 20};
}

static void test_round_trip(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    static const struct {
        size_t series, samples;
    } sizes[] = {{1, 1}, {3, 5000}, {40, 300}, {700, 60}, {6000, 3}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct model_room room;
        struct model m;
        struct part_meta meta = new_meta(i + 1);
        room_open(&room, i % 2 ? 4096 : 16 << 20);
        model_random(&m, &r, sizes[i].series, sizes[i].samples, true, MODEL_T0, MODEL_T1);
        model_write(&m, room.env, room.path, &meta);
        struct part *p = open_part(&room);
        assert_memory_equal(&meta, part_meta(p), sizeof meta);
        model_compare(&m, p, &room.key);
        uint64_t faults = 1;
        assert_ok(part_verify(room.env, room.path, NULL, NULL, &faults));
        assert_int_equal(faults, 0);
        part_unref(p);
        model_free(&m);
        room_close(&room);
    }
}

/* Series in any order, several cursors. */
static void test_random_access(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    struct model_room room;
    struct model m;
    struct part_meta meta = new_meta(7);
    room_open(&room, 1 << 20);
    model_random(&m, &r, 800, 30, true, MODEL_T0, MODEL_T1);
    model_write(&m, room.env, room.path, &meta);
    struct part *p = open_part(&room);
    struct part_cursor *c[2] = {part_cursor_create(p), part_cursor_create(p)};
    for (int i = 0; i < 1000; i++) {
        uint32_t id = (uint32_t)rng_below(&r, m.n);
        model_compare_series(c[i % 2], id, &m.series[id]);
    }
    part_cursor_destroy(c[0]);
    part_cursor_destroy(c[1]);
    part_unref(p);
    model_free(&m);
    room_close(&room);
}

/* ---- finding ------------------------------------------------------------------------------------------------ */

static void random_matcher(struct rng *r, struct matcher *m)
{
    static const char *names[] = {"__name__", "job", "instance", "cpu", "mode", "Zone", "id", "absent"};
    static const char *values[] = {"",  "metric_1", "job0", "host-1", "host-10",
                                   "3", "mode ü 2", "1",    "nobody", "unique-5"};
    static const char *patterns[] = {
        "",      ".*",          ".+",  "metric_1|metric_3", "host-1.*", "host-(1|2)", "job[01]",    "|host-3",
        "[0-4]", "nobody|none", ".*1", "unique-1.*",        "x?",       "mode.*2",    "metric_2.?", "|1|2"};
    enum match_op op = (enum match_op)rng_below(r, 4);
    const char *value = op == MATCH_EQ || op == MATCH_NE ? values[rng_below(r, ARRAY_LEN(values))]
                                                         : patterns[rng_below(r, ARRAY_LEN(patterns))];
    assert_ok(matcher_init(m, op, str_of(names[rng_below(r, ARRAY_LEN(names))]), str_of(value)));
}

static void check_find(struct model *m, struct part_cursor *c, const struct matcher *ms, size_t n, int64_t t_min,
                       int64_t t_max)
{
    struct postings *found;
    assert_ok(part_find(c, ms, n, t_min, t_max, &found));
    for (size_t i = 0; i < m->n; i++) {
        const struct model_series *s = &m->series[i];
        bool matched, in_range = false, near = false;
        assert_ok(matchers_match(ms, n, &s->ls, &matched));
        for (size_t k = 0; k < s->n; k++)
            in_range |= s->t[k] >= t_min && s->t[k] <= t_max;
        /* whole days count, and the days inside a block */
        near = t_max >= s->t[0] - 86400000 && t_min <= s->t[s->n - 1] + 86400000;
        bool got = postings_has(found, (uint32_t)i);
        if (matched && in_range) assert_true(got);
        if (got) assert_true(matched && near);
    }
    postings_destroy(found);
}

static void test_find(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    for (size_t n_series = 60; n_series <= 3000; n_series *= 7) {
        struct model_room room;
        struct model m;
        struct part_meta meta = new_meta(3);
        room_open(&room, 8 << 20);
        model_random(&m, &r, n_series, 6, false, MODEL_T0, MODEL_T1);
        model_write(&m, room.env, room.path, &meta);
        struct part *p = open_part(&room);
        struct part_cursor *c = part_cursor_create(p);
        for (int i = 0; i < 300; i++) {
            struct matcher ms[3];
            size_t n = rng_below(&r, 4);
            for (size_t k = 0; k < n; k++)
                random_matcher(&r, &ms[k]);
            int64_t a = MODEL_T0 + (int64_t)rng_below(&r, 31 * 86400000ull),
                    b = a + (int64_t)rng_below(&r, 3 * 86400000);
            if (i % 3 == 0) a = INT64_MIN, b = INT64_MAX;
            check_find(&m, c, ms, n, a, b);
            for (size_t k = 0; k < n; k++)
                matcher_deinit(&ms[k]);
        }
        check_find(&m, c, NULL, 0, MODEL_T0 - 10, MODEL_T0 - 1);
        check_find(&m, c, NULL, 0, MODEL_T1, INT64_MAX);
        part_cursor_destroy(c);
        part_unref(p);
        model_free(&m);
        room_close(&room);
    }
}

/* ---- label names and values --------------------------------------------------------------------------------- */

struct strings {
    struct arena *arena;
    str v[8192];
    size_t n, stop_at;
};

static bool collect(void *arg, str s)
{
    struct strings *all = arg;
    assert_true(all->n < ARRAY_LEN(all->v));
    if (all->n > 0) assert_true(str_cmp(all->v[all->n - 1], s) < 0);
    all->v[all->n++] = arena_str(all->arena, s);
    return all->n != all->stop_at;
}

/* What the model says: names (name.n == 0) or values of one. */
static size_t expect(struct model *m, str name, const struct postings *filter, str *out)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (filter != NULL && !postings_has(filter, (uint32_t)i)) continue;
        for (uint32_t k = 0; k < m->series[i].ls.n; k++) {
            const struct label *l = &m->series[i].ls.v[k];
            if (name.n == 0)
                out[n++] = l->name;
            else if (str_eq(l->name, name))
                out[n++] = l->value;
        }
    }
    qsort(out, n, sizeof *out, model_str_order);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || !str_eq(out[kept - 1], out[i])) out[kept++] = out[i];
    return kept;
}

static void check_strings(struct model *m, struct part_cursor *c, const char *name, const struct postings *filter)
{
    struct strings *got = arena_zalloc(&m->arena, sizeof *got);
    str *want = arena_alloc(&m->arena, 16 * (m->n + 1) * sizeof *want);
    got->arena = &m->arena;
    size_t n = expect(m, str_of(name), filter, want);
    if (*name == 0)
        assert_ok(part_label_names(c, filter, collect, got));
    else
        assert_ok(part_label_values(c, str_of(name), filter, collect, got));
    assert_int_equal(got->n, n);
    for (size_t i = 0; i < n; i++)
        assert_true(str_eq(got->v[i], want[i]));
}

static void test_labels(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    struct model_room room;
    struct model m;
    struct part_meta meta = new_meta(3);
    room_open(&room, 8 << 20);
    model_random(&m, &r, 12000, 2, false, MODEL_T0, MODEL_T1);
    assert_true(m.n > 4200);
    model_write(&m, room.env, room.path, &meta);
    struct part *p = open_part(&room);
    struct part_cursor *c = part_cursor_create(p);
    struct postings *few = postings_create(), *many = postings_range(10, (uint32_t)m.n - 30), *none = postings_create();
    for (int i = 0; i < 20; i++)
        postings_add(few, (uint32_t)rng_below(&r, m.n));
    const struct postings *filters[] = {NULL, few, many, none};
    static const char *names[] = {"", "__name__", "instance", "id", "Zone", "absent"};
    for (size_t f = 0; f < ARRAY_LEN(filters); f++)
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            check_strings(&m, c, names[i], filters[f]);
    for (int i = 0; i < 20; i++) { /* names of some hundreds: a sample has most of them */
        uint32_t from = (uint32_t)rng_below(&r, m.n - 2000);
        struct postings *some = postings_range(from, from + 200 + (uint32_t)rng_below(&r, 1800));
        if (i % 2 == 0) postings_add(some, (uint32_t)rng_below(&r, m.n));
        check_strings(&m, c, "", some);
        postings_destroy(some);
    }
    struct strings *got = arena_zalloc(&m.arena, sizeof *got);
    got->arena = &m.arena;
    got->stop_at = 3;
    assert_ok(part_label_values(c, STR("instance"), NULL, collect, got));
    assert_int_equal(got->n, 3);
    postings_destroy(few);
    postings_destroy(many);
    postings_destroy(none);
    part_cursor_destroy(c);
    part_unref(p);
    model_free(&m);
    room_close(&room);
}

/* ---- what the writer does with special series --------------------------------------------------------------- */

static void test_sharing_and_constants(void **state)
{
    (void)state;
    struct model_room room;
    room_open(&room, 1 << 20);
    static const str symbols[] = {{"__name__", 8}, {"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}};
    struct part_meta meta = new_meta(1);
    struct part_writer *w;
    int64_t t[300];
    double v[300];
    assert_ok(part_writer_create(room.env, room.path, &meta, symbols, 5, &w));
    for (uint32_t s = 0; s < 4; s++) {
        assert_ok(part_writer_series(w, (uint32_t[]){0, 1 + s}, 1));
        if (s == 1) continue; /* leaves no trace */
        for (int i = 0; i < 300; i++) {
            t[i] = MODEL_T0 + 1000 * i;
            v[i] = s == 0 ? -0.5 : s == 2 ? f64_from_bits(STALE_NAN_BITS) : i;
        }
        assert_ok(part_writer_floats(w, t, v, 300));
    }
    assert_ok(part_writer_finish(w, &meta));
    part_writer_destroy(w);
    assert_int_equal(meta.series, 3);
    assert_int_equal(meta.blocks, 3);

    struct part *p = open_part(&room);
    struct part_cursor *c = part_cursor_create(p);
    struct part_series s[3];
    struct part_block b[3];
    for (uint32_t i = 0; i < 3; i++) {
        assert_ok(part_series(c, i, &s[i]));
        b[i] = s[i].blocks[0];
        assert_int_equal(b[i].time_offset, b[0].time_offset);
    }
    assert_true(b[0].constant && b[0].has_aggregates && b[0].agg.sum == -150 && b[0].agg.resets == 0);
    assert_true(b[1].constant && !b[1].has_aggregates && is_stale_nan(b[1].agg.first));
    assert_true(!b[2].constant && b[2].has_aggregates && b[2].agg.max == 299 && b[2].agg.sum == 300 * 299 / 2);
    assert_true(b[2].agg.resets == 0 && b[2].agg.min == 0 && b[2].agg.first == 0 && b[2].agg.last == 299);
    part_cursor_destroy(c);
    part_unref(p);
    room_close(&room);
}

static void test_writer_refuses(void **state)
{
    (void)state;
    struct model_room room;
    room_open(&room, 1 << 20);
    static const str symbols[] = {{"__name__", 8}, {"a", 1}, {"b", 1}};
    struct part_meta meta = new_meta(1);
    struct part_writer *w;
    double v[2] = {1, 2};
    assert_ok(part_writer_create(room.env, room.path, &meta, symbols, 3, &w));
    assert_err(part_writer_floats(w, (int64_t[]){MODEL_T0, MODEL_T0 + 1}, v, 2), ERR_INVALID);
    assert_err(part_writer_series(w, (uint32_t[]){0, 3}, 1), ERR_INVALID);
    assert_err(part_writer_series(w, (uint32_t[]){1, 1, 0, 1}, 2), ERR_INVALID);
    assert_ok(part_writer_series(w, (uint32_t[]){0, 2}, 1));
    assert_err(part_writer_floats(w, (int64_t[]){MODEL_T0, MODEL_T0}, v, 2), ERR_INVALID);
    assert_ok(part_writer_floats(w, (int64_t[]){MODEL_T0, MODEL_T0 + 1}, v, 2));
    assert_err(part_writer_floats(w, (int64_t[]){MODEL_T0 + 1, MODEL_T0 + 2}, v, 2), ERR_INVALID);
    assert_ok(part_writer_series(w, (uint32_t[]){0, 1}, 1));
    assert_ok(part_writer_floats(w, (int64_t[]){MODEL_T0, MODEL_T0 + 1}, v, 2));
    assert_err(part_writer_finish(w, &meta), ERR_INVALID);
    part_writer_destroy(w);
    assert_int_equal(access(room.path, F_OK), -1);
    room_close(&room);
}

/* As many and as long labels as there may be, times at both ends of time, in a partition they are not of. */
static void test_extremes(void **state)
{
    (void)state;
    enum { N = LIMIT_LABELS };
    struct model_room room;
    struct model m = {0};
    struct part_meta meta = new_meta(1);
    room_open(&room, 1 << 20);
    m.n = 3;
    m.series = arena_zalloc(&m.arena, m.n * sizeof *m.series);
    char *text = arena_zalloc(&m.arena, LIMIT_LABEL_VALUE);
    memset(text, 'x', LIMIT_LABEL_VALUE);
    for (size_t i = 0; i < m.n; i++) {
        struct model_series *s = &m.series[i];
        s->ls = (struct labels){arena_alloc(&m.arena, N * sizeof(struct label)), i == 1 ? N : 2};
        for (uint32_t k = 0; k < s->ls.n; k++) {
            s->ls.v[k].name = arena_printf(&m.arena, "n%03u", k);
            s->ls.v[k].value = i == 1 ? arena_printf(&m.arena, "value %u", k) : (str){text, LIMIT_LABEL_VALUE - i};
        }
        s->n = 2;
        s->t = arena_alloc(&m.arena, 2 * sizeof *s->t);
        s->v = arena_zalloc(&m.arena, 2 * sizeof *s->v);
        s->hist = arena_zalloc(&m.arena, 2 * sizeof *s->hist);
        s->t[0] = LIMIT_TIME_MIN + (int64_t)i;
        s->t[1] = LIMIT_TIME_MAX - (int64_t)i;
        m.samples += s->n;
    }
    qsort(m.series, m.n, sizeof *m.series, model_order);
    model_write(&m, room.env, room.path, &meta);
    struct part *p = open_part(&room);
    struct part_cursor *c = part_cursor_create(p);
    model_compare(&m, p, &room.key);
    check_find(&m, c, NULL, 0, 0, 0);
    uint64_t faults = 1;
    assert_ok(part_verify(room.env, room.path, NULL, NULL, &faults));
    assert_int_equal(faults, 0);
    part_cursor_destroy(c);
    part_unref(p);
    model_free(&m);
    room_close(&room);
}

/* Histograms so large that bytes, not their number, cut the blocks. */
static void test_large_histograms(void **state)
{
    (void)state;
    enum { N = 150, BUCKETS = 5000 };
    struct rng r;
    rng_seed(&r, test_seed());
    struct model_room room;
    struct model m = {0};
    struct part_meta meta = new_meta(1);
    room_open(&room, 1 << 20);
    model_random(&m, &r, 1, N, false, MODEL_T0, MODEL_T1);
    struct model_series *s = &m.series[0];
    s->n = m.samples = N;
    s->start = NULL;
    s->t = arena_alloc(&m.arena, N * sizeof *s->t);
    s->v = arena_zalloc(&m.arena, N * sizeof *s->v);
    s->hist = arena_alloc(&m.arena, N * sizeof *s->hist);
    double *counts = arena_alloc(&m.arena, BUCKETS * sizeof *counts);
    struct hist_span span = {0, BUCKETS};
    for (size_t i = 0; i < N; i++) {
        struct hist h = {.schema = 8, .is_float = true, .n_positive_spans = 1, .n_positive = BUCKETS};
        struct buf b = {0};
        h.positive_spans = &span;
        h.positive = counts;
        for (size_t k = 0; k < BUCKETS; k++)
            h.count += counts[k] = rng_unit(&r);
        assert_ok(hist_validate(&h));
        hist_encode(&h, &b);
        s->t[i] = MODEL_T0 + (int64_t)i;
        s->hist[i] = arena_str(&m.arena, buf_as_str(&b));
        buf_deinit(&b);
    }
    model_write(&m, room.env, room.path, &meta);
    assert_true(meta.blocks > 4 && meta.blocks < 20);
    struct part *p = open_part(&room);
    model_compare(&m, p, &room.key);
    part_unref(p);
    model_free(&m);
    room_close(&room);
}

static void test_delete_on_unref(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 1);
    struct model_room room;
    struct model m;
    struct part_meta meta = new_meta(1);
    room_open(&room, 1 << 20);
    model_random(&m, &r, 10, 10, false, MODEL_T0, MODEL_T1);
    model_write(&m, room.env, room.path, &meta);
    struct part *p = open_part(&room);
    struct part_cursor *c = part_cursor_create(p);
    part_delete_on_unref(p);
    part_unref(p);
    assert_int_equal(access(room.path, F_OK), 0);
    model_compare_series(c, 0, &m.series[0]);
    part_cursor_destroy(c);
    assert_int_equal(access(room.path, F_OK), -1);
    assert_int_equal(fcache_bytes(room.cache), 0);
    model_free(&m);
    room_close(&room);
}

/* ---- damage ------------------------------------------------------------------------------------------------- */

static uint8_t *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = mem_alloc(*n);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

static void write_file(const char *path, const uint8_t *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* Reads everything; returns how many reads failed. Only corruption may be the reason. */
static unsigned read_all(struct model_room *room, const struct model *m)
{
    struct part *p;
    unsigned failures = 0;
    err e = part_open(room->env, room->path, &room->key, room->cache, &p);
    if (e != NULL) {
        assert_err(e, ERR_CORRUPT);
        return 1;
    }
    struct part_cursor *c = part_cursor_create(p);
    int64_t t[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
    double v[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
    for (uint32_t i = 0; i < part_meta(p)->series; i++) {
        struct part_series s;
        struct hash128 id;
        e = part_series(c, i, &s);
        for (uint32_t k = 0; e == NULL && k < s.n_blocks; k++)
            if (s.blocks[k].kind == BLOCK_FLOAT) e = part_read_floats(c, &s.blocks[k], t, v);
        if (e == NULL) e = part_series_id(c, &s, &id);
        if (e == NULL && m != NULL) model_compare_labels(c, &s, &m->series[i].ls);
        if (e == NULL) continue;
        failures++;
        assert_err(e, ERR_CORRUPT);
        assert_true(part_damaged(p));
    }
    struct postings *found;
    e = part_find(c, NULL, 0, INT64_MIN, INT64_MAX, &found);
    if (e == NULL)
        postings_destroy(found);
    else
        assert_err(e, ERR_CORRUPT);
    part_cursor_destroy(c);
    part_unref(p);
    return failures;
}

static void count_fault(void *arg, uint64_t offset, const char *what)
{
    (void)offset;
    assert_non_null(what);
    ++*(unsigned *)arg;
}

static void test_damage(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    struct model_room room;
    struct model m;
    struct part_meta meta = new_meta(3);
    room_open(&room, 1 << 20);
    model_random(&m, &r, 300, 40, true, MODEL_T0, MODEL_T1);
    model_write(&m, room.env, room.path, &meta);
    size_t n;
    uint8_t *bytes = read_file(room.path, &n);
    assert_int_equal(read_all(&room, &m), 0);
    for (int i = 0; i < 60; i++) {
        size_t at = rng_below(&r, n);
        uint8_t was = bytes[at];
        bytes[at] ^= (uint8_t)(1 + rng_below(&r, 255));
        write_file(room.path, bytes, n);
        bytes[at] = was;
        read_all(&room, &m);
        uint64_t faults = 0;
        unsigned reported = 0;
        assert_ok(part_verify(room.env, room.path, count_fault, &reported, &faults));
        assert_true(faults > 0);
        assert_int_equal(faults, reported);
    }
    for (int i = 0; i < 20; i++) {
        write_file(room.path, bytes, rng_below(&r, n));
        assert_true(read_all(&room, NULL) > 0);
        uint64_t faults = 0;
        assert_ok(part_verify(room.env, room.path, NULL, NULL, &faults));
        assert_true(faults > 0);
    }
    mem_free(bytes);
    model_free(&m);
    room_close(&room);
}

static void test_inspect(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 5);
    struct model_room room;
    struct model m;
    struct part_meta meta = new_meta(3);
    struct buf text = {0};
    room_open(&room, 1 << 20);
    model_random(&m, &r, 30, 600, true, MODEL_T0, MODEL_T1);
    model_write(&m, room.env, room.path, &meta);
    assert_ok(part_inspect(room.env, room.path, 0, &text));
    buf_u8(&text, 0);
    assert_non_null(strstr((char *)text.data, "samples"));
    assert_null(strstr((char *)text.data, "host-1"));
    buf_clear(&text);
    assert_ok(part_inspect(room.env, room.path, 1, &text));
    buf_u8(&text, 0);
    assert_non_null(strstr((char *)text.data, "host-1"));
    buf_deinit(&text);
    model_free(&m);
    room_close(&room);
}

/* ---- read-back ---------------------------------------------------------------------------------------------- */

/* A disk that keeps something else than it was given: one byte near the end of what is appended. */
struct bad_disk {
    struct env env; /* first */
    size_t from_end;
};

static struct bad_disk bad_disk;

static err append_badly(struct env_file *f, const void *p, size_t n)
{
    uint8_t *copy = mem_dup(p, n);
    if (n > bad_disk.from_end) copy[n - 1 - bad_disk.from_end] ^= 1;
    err e = env_posix()->ops->file_append(f, copy, n);
    mem_free(copy);
    return e;
}

static void test_read_back(void **state)
{
    (void)state;
    struct model_room room;
    room_open(&room, 1 << 20);
    struct env_ops ops = *room.env->ops;
    ops.file_append = append_badly;
    static const str symbols[] = {{"__name__", 8}, {"a", 1}};
    static const size_t from_end[] = {0, 9, 20, 100, PART_FOOTER_SIZE + PART_TAIL_SIZE + 1};
    for (size_t i = 0; i < ARRAY_LEN(from_end); i++) {
        bad_disk = (struct bad_disk){{&ops, true}, from_end[i]};
        struct part_meta meta = new_meta(1);
        struct part_writer *w;
        assert_ok(part_writer_create(&bad_disk.env, room.path, &meta, symbols, 2, &w));
        assert_ok(part_writer_series(w, (uint32_t[]){0, 1}, 1));
        assert_ok(part_writer_floats(w, (int64_t[]){MODEL_T0}, (double[]){1}, 1));
        assert_err(part_writer_finish(w, &meta), ERR_CORRUPT);
        part_writer_destroy(w);
        assert_int_equal(access(room.path, F_OK), -1);
    }
    room_close(&room);
}

/* ---- a failing machine -------------------------------------------------------------------------------------- */

/* Writes a small part, opens it and reads it whole, as the flush and the queries do. */
static err write_and_read(struct env *env, struct fcache *cache)
{
    static const str symbols[] = {{"__name__", 8}, {"a", 1}, {"b", 1}};
    static const struct hash_key key;
    struct part_meta meta = new_meta(1);
    struct part_writer *w = NULL;
    struct part *p = NULL;
    struct part_cursor *c = NULL;
    struct part_series s;
    int64_t t[100 + COLUMN_VALUE_PAD];
    double v[100 + COLUMN_VALUE_PAD];
    err e = NULL;
    TRY_OUT(part_writer_create(env, "/p", &meta, symbols, 3, &w));
    for (uint32_t i = 1; i <= 2; i++) {
        for (int k = 0; k < 100; k++)
            t[k] = MODEL_T0 + k * (int64_t)i, v[k] = k % 7;
        TRY_OUT(part_writer_series(w, (uint32_t[]){0, i}, 1));
        TRY_OUT(part_writer_floats(w, t, v, 100));
    }
    TRY_OUT(part_writer_finish(w, &meta));
    TRY_OUT(part_open(env, "/p", &key, cache, &p));
    c = part_cursor_create(p);
    for (uint32_t i = 0; i < 2; i++) {
        TRY_OUT(part_series(c, i, &s));
        TRY_OUT(part_read_floats(c, &s.blocks[0], t, v));
        assert_true(v[8] == 1);
    }
out:
    part_cursor_destroy(c);
    part_unref(p);
    part_writer_destroy(w);
    return e;
}

/* Each call fails once: always an error, nothing stays open, and a part that was not finished is gone. */
static void test_failing_calls(void **state)
{
    (void)state;
    struct sim_env *sim = sim_env_create(test_seed());
    struct env *env = sim_env_env(sim);
    for (uint64_t nth = 1;; nth++) {
        uint64_t before = sim_env_failures(sim);
        struct fcache *cache = fcache_create(1 << 20, NULL);
        sim_env_fail(sim, SIM_CALLS, nth, 1, EIO);
        err e = write_and_read(env, cache);
        bool failed = sim_env_failures(sim) > before;
        sim_env_fail_never(sim);
        fcache_destroy(cache);
        assert_int_equal(sim_env_open_handles(sim), 0);
        if (!failed) {
            assert_ok(e);
            assert_true(nth > 8);
            break;
        }
        assert_err(e, ERR_IO);
        assert_ok(env->ops->unlink(env, "/p"));
    }
    sim_env_destroy(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_random_access),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_writer_refuses),
        cmocka_unit_test(test_sharing_and_constants),
        cmocka_unit_test(test_delete_on_unref),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_inspect),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_large_histograms),
        cmocka_unit_test(test_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
