/*
 * test_cardinality.c: storage_cardinality against counting one by one, over random series, with and without matchers.
 * Real files in a temporary folder.
 */
#include <unistd.h>

#include "storage/base/alloc.h"
#include "storage/base/rng.h"
#include "storage/storage.h"
#include "tests/unit/testing.h"

#define SERIES 600
#define LABELS 4
#define T0 INT64_C(1767225600000)

static const char *const names[LABELS] = {"__name__", "job", "path", "zone"};
static const unsigned n_values[LABELS] = {7, 3, 40, 5};

struct world {
    char dir[64];
    struct db *db;
    uint8_t values[SERIES][LABELS]; /* 0: the label is absent */
};

static str value_text(struct arena *a, unsigned label, unsigned value)
{
    return arena_printf(a, "%s-%u", label == 0 ? "metric" : names[label], value);
}

static err resolve(void *arg, uint32_t i, struct arena *a, struct labels *out)
{
    const struct world *w = arg;
    *out = (struct labels){arena_alloc(a, LABELS * sizeof *out->v), 0};
    for (unsigned k = 0; k < LABELS; k++)
        if (w->values[i][k] > 0) out->v[out->n++] = (struct label){str_of(names[k]), value_text(a, k, w->values[i][k])};
    return NULL;
}

static void append_all(struct world *w)
{
    struct batch_series series[SERIES];
    int64_t t[SERIES];
    double v[SERIES];
    for (uint32_t i = 0; i < SERIES; i++) {
        series[i] = (struct batch_series){.n = 1, .raw = w->values[i], .raw_bytes = LABELS};
        series[i].alias = hash128(storage_hash_key(w->db), w->values[i], LABELS);
        t[i] = T0 + i;
        v[i] = i;
    }
    struct batch b = {.series = series, .n_series = SERIES, .t = t, .v = v, .n_samples = SERIES};
    b.resolve = resolve;
    b.resolve_arg = w;
    struct append_result r;
    assert_ok(storage_append(w->db, &b, &r));
    assert_int_equal(r.accepted, SERIES);
    assert_ok(storage_wait(w->db, r.seq));
}

/* The last label tells series apart that are alike: zone and path alone would not make SERIES distinct ones. */
static int setup(void **state)
{
    struct world *w = mem_zalloc(sizeof *w);
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int i = 0; i < SERIES; i++) {
        for (unsigned k = 0; k < LABELS; k++)
            w->values[i][k] = (uint8_t)(k == 0 ? 1 + rng_below(&rng, n_values[0]) : rng_below(&rng, n_values[k] + 1));
        for (int before = 0; before < i; before++)
            if (memcmp(w->values[before], w->values[i], LABELS) == 0) {
                i--;
                break;
            }
    }
    snprintf(w->dir, sizeof w->dir, "/tmp/varve-test-cardinality-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    assert_ok(storage_open(&(struct storage_options){.path = w->dir}, &w->db));
    append_all(w);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    assert_ok(storage_close(w->db));
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", w->dir);
    int rc = system(command);
    mem_free(w);
    return rc;
}

/* ---- counting one by one ------------------------------------------------------------------------------------- */

typedef bool (*chosen_fn)(const uint8_t *values);

static uint64_t series_with(const struct world *w, chosen_fn chosen, unsigned label, unsigned value)
{
    uint64_t n = 0;
    for (int i = 0; i < SERIES; i++)
        n += chosen(w->values[i]) && w->values[i][label] == value;
    return n;
}

static bool all(const uint8_t *values)
{
    (void)values;
    return true;
}

/* job="job-1" or path!="" in zone-2 */
static bool some(const uint8_t *values)
{
    return values[1] == 1 || (values[2] > 0 && values[3] == 2);
}

/* The ranking's order holds, and each row says what counting says. */
static void check_values(const struct world *w, chosen_fn chosen, const struct cardinality_ranking *r, unsigned label,
                         const char *prefix)
{
    size_t distinct = 0;
    struct arena a = {0};
    for (unsigned v = 1; v <= n_values[label]; v++)
        distinct += series_with(w, chosen, label, v) > 0;
    assert_int_equal(r->n, distinct);
    for (size_t i = 0; i < r->n; i++) {
        if (i > 0)
            assert_true(r->rows[i].n < r->rows[i - 1].n ||
                        (r->rows[i].n == r->rows[i - 1].n && str_cmp(r->rows[i - 1].name, r->rows[i].name) < 0));
        unsigned found = 0;
        for (unsigned v = 1; v <= n_values[label]; v++) {
            str text = arena_printf(&a, "%s%.*s", prefix, STR_ARG(value_text(&a, label, v)));
            if (str_eq(text, r->rows[i].name)) found = v;
        }
        assert_int_not_equal(found, 0);
        assert_int_equal(r->rows[i].n, series_with(w, chosen, label, found));
    }
    arena_deinit(&a);
}

static uint64_t row_of(const struct cardinality_ranking *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->rows[i].name, str_of(name))) return r->rows[i].n;
    return 0;
}

static void check_labels(const struct world *w, chosen_fn chosen, const struct cardinality *c)
{
    uint64_t pairs = 0;
    struct arena a = {0};
    for (unsigned k = 0; k < LABELS; k++) {
        uint64_t series = 0, values = 0, bytes = 0;
        for (unsigned v = 1; v <= n_values[k]; v++) {
            uint64_t n = series_with(w, chosen, k, v);
            series += n;
            values += n > 0;
            bytes += n * value_text(&a, k, v).n;
        }
        assert_int_equal(row_of(&c->series_by_label, names[k]), series);
        assert_int_equal(row_of(&c->values_by_label, names[k]), values);
        assert_int_equal(row_of(&c->bytes_by_label, names[k]), bytes);
        pairs += values;
    }
    assert_int_equal(c->label_pairs, pairs);
    arena_deinit(&a);
}

/* ---- tests --------------------------------------------------------------------------------------------------- */

static void test_everything(void **state)
{
    const struct world *w = *state;
    struct cardinality c;
    assert_ok(storage_cardinality(w->db, &(struct cardinality_options){.top = 1000, .focus = STR("zone")}, &c));
    assert_int_equal(c.series, SERIES);
    check_values(w, all, &c.series_by_metric, 0, "");
    check_values(w, all, &c.series_by_focus, 3, "");
    check_values(w, all, &c.created_by_metric, 0, "");
    check_labels(w, all, &c);
    size_t pairs = c.series_by_pair.n;
    assert_int_equal(pairs, c.label_pairs);
    cardinality_deinit(&c);
}

static void test_matchers(void **state)
{
    const struct world *w = *state;
    struct matcher job, zone[2];
    assert_ok(matcher_init(&job, MATCH_EQ, STR("job"), STR("job-1")));
    assert_ok(matcher_init(&zone[0], MATCH_EQ, STR("zone"), STR("zone-2")));
    assert_ok(matcher_init(&zone[1], MATCH_RE, STR("path"), STR(".+")));
    struct matcher_set sets[] = {{&job, 1}, {zone, 2}};
    struct cardinality_options o = {.sets = sets, .n_sets = 2, .top = 1000, .focus = STR("path")};
    struct cardinality c;
    assert_ok(storage_cardinality(w->db, &o, &c));
    uint64_t series = 0;
    for (int i = 0; i < SERIES; i++)
        series += some(w->values[i]);
    assert_int_equal(c.series, series);
    check_values(w, some, &c.series_by_metric, 0, "");
    check_values(w, some, &c.series_by_focus, 2, "");
    check_labels(w, some, &c);
    cardinality_deinit(&c);

    struct matcher nobody;
    assert_ok(matcher_init(&nobody, MATCH_EQ, STR("job"), STR("nobody")));
    o.sets = &(struct matcher_set){&nobody, 1};
    o.n_sets = 1;
    assert_ok(storage_cardinality(w->db, &o, &c));
    assert_int_equal(c.series + c.label_pairs + c.series_by_metric.n + c.created_by_metric.n + c.series_by_label.n, 0);
    cardinality_deinit(&c);
    matcher_deinit(&nobody);
    matcher_deinit(&job);
    matcher_deinit(&zone[0]);
    matcher_deinit(&zone[1]);
}

/* The first k rows of a long ranking are the short one. */
static void test_top(void **state)
{
    const struct world *w = *state;
    struct cardinality whole, top;
    assert_ok(storage_cardinality(w->db, &(struct cardinality_options){.top = 1000}, &whole));
    for (size_t k = 0; k <= 20; k++) {
        assert_ok(storage_cardinality(w->db, &(struct cardinality_options){.top = k}, &top));
        assert_int_equal(top.series_by_pair.n, k);
        for (size_t i = 0; i < k; i++) {
            assert_int_equal(top.series_by_pair.rows[i].n, whole.series_by_pair.rows[i].n);
            assert_true(str_eq(top.series_by_pair.rows[i].name, whole.series_by_pair.rows[i].name));
        }
        assert_true(top.created_by_metric.n <= k);
        cardinality_deinit(&top);
    }
    cardinality_deinit(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_matchers),
        cmocka_unit_test(test_top),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
