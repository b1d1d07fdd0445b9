/* test_wal.c: log records as bytes, segments with damage, group commit, the manifest, the sample set. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/base/alloc.h"
#include "storage/base/rng.h"
#include "storage/manifest.h"
#include "storage/sample_set.h"
#include "storage/wal.h"
#include "tests/unit/testing.h"

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/varve-test-wal-XXXXXX");
    return mkdtemp(dir) == NULL;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

/* Every other batch has start timestamps, but not on all samples. */
static int64_t start_of(uint64_t seq, uint32_t i)
{
    static const int64_t starts[] = {1, INT64_MIN, 0, INT64_MAX, -5};
    return seq % 2 == 0 ? starts[i % 5] : 0;
}

static void put_batch(struct buf *out, uint64_t seq, uint32_t n)
{
    struct wal_defs defs = {0};
    uint32_t pairs[] = {0, 1}, *handles = mem_alloc(n * sizeof *handles), *counts = mem_alloc(n * sizeof *counts);
    int64_t *t = mem_alloc(n * sizeof *t);
    double *v = mem_alloc(n * sizeof *v);
    str *hist = mem_zalloc(n * sizeof *hist);
    int64_t *start = mem_zalloc(n * sizeof *start);
    wal_defs_symbol(&defs, 0, LABEL_NAME);
    wal_defs_symbol(&defs, 1, STR("up"));
    wal_defs_series(&defs, 0, pairs, 1);
    for (uint32_t i = 0; i < n; i++) {
        handles[i] = (i * 31) % n;
        counts[i] = 1;
        t[i] = (int64_t)seq * 1000 - i;
        v[i] = f64_from_bits(seq * 1000003 + i);
        if (i % 5 == 4) hist[i] = STR("blob");
        start[i] = start_of(seq, i);
    }
    struct wal_batch b = {.handles = handles,
                          .counts = counts,
                          .n_runs = n,
                          .t = t,
                          .v = v,
                          .hist = hist,
                          .start = start,
                          .n_samples = n};
    size_t at = wal_record_begin(out);
    enum wal_type type = wal_batch_encode(out, &defs, &b);
    assert_int_equal(type, seq % 2 == 0 ? WAL_BATCH_STARTS : WAL_BATCH);
    wal_record_end(out, at, type, seq);
    wal_defs_deinit(&defs);
    mem_free(handles);
    mem_free(counts);
    mem_free(t);
    mem_free(v);
    mem_free(hist);
    mem_free(start);
}

struct seen {
    uint64_t seqs[64];
    size_t n;
};

static err check_record(void *arg, const struct wal_record *r, const uint8_t *payload)
{
    struct seen *s = arg;
    struct arena a = {0};
    struct wal_content c;
    assert_null(wal_record_decode(r, payload, &a, &c));
    const struct wal_batch b = c.batch;
    assert_int_equal(b.n_symbols, 2);
    assert_true(str_eq(b.symbols[1].text, STR("up")));
    assert_int_equal(b.start != NULL, r->seq % 2 == 0);
    assert_int_equal(r->type, r->seq % 2 == 0 ? WAL_BATCH_STARTS : WAL_BATCH);
    for (uint32_t i = 0; i < b.n_samples; i++) {
        assert_int_equal(b.handles[i], (i * 31) % b.n_runs);
        assert_int_equal(b.t[i], (int64_t)r->seq * 1000 - i);
        assert_true(f64_bits(b.v[i]) == r->seq * 1000003 + i);
        if (b.n_samples >= 5) assert_int_equal(b.hist[i].n, i % 5 == 4 ? 4 : 0);
        assert_true((b.start == NULL ? 0 : b.start[i]) == start_of(r->seq, i));
    }
    s->seqs[s->n++] = r->seq;
    arena_deinit(&a);
    return NULL;
}

static struct wal_scan scan_bytes(const struct buf *b, struct seen *seen)
{
    char path[128];
    snprintf(path, sizeof path, "%s/0000000001.wal", dir);
    FILE *f = fopen(path, "wb");
    assert_int_equal(fwrite(b->data, 1, b->n, f), b->n);
    fclose(f);
    struct wal_scan scan;
    *seen = (struct seen){0};
    assert_null(wal_read(env_posix(), path, check_record, seen, &scan));
    return scan;
}

/* Whatever one byte is damaged, at most the record it lies in is lost, and only a damaged last one looks torn. */
static void test_damage_costs_one_record(void **state)
{
    (void)state;
    struct buf b = {0};
    size_t start[5];
    wal_segment_header(&b, 1);
    for (uint32_t i = 0; i < 5; i++) {
        start[i] = b.n;
        put_batch(&b, i + 1, 3 + 4 * i);
    }
    struct seen seen;
    struct wal_scan scan = scan_bytes(&b, &seen);
    assert_int_equal(seen.n, 5);
    assert_int_equal(scan.damaged + scan.torn_tail, 0);
    for (size_t at = 0; at < b.n; at += 3) {
        b.data[at] ^= 0x40;
        scan = scan_bytes(&b, &seen);
        size_t hit = 0;
        while (hit < 5 && (hit + 1 == 5 || at >= start[hit + 1]))
            hit++;
        if (at < start[0]) {
            assert_int_equal(seen.n, 5);
        } else {
            assert_int_equal(seen.n, 4);
            bool last = at >= start[4];
            assert_int_equal(scan.damaged, last ? 0 : 1);
            assert_int_equal(scan.torn_tail > 0, last);
            if (!last) assert_int_equal(scan.damage_at, start[hit]);
        }
        b.data[at] ^= 0x40;
    }
    for (size_t n = 0; n < b.n; n += 7) { /* cut off anywhere: the whole records before are there */
        struct buf cut = b;
        cut.n = n;
        scan_bytes(&cut, &seen);
        size_t whole = 0;
        while (whole < 5 && (whole + 1 < 5 ? start[whole + 1] : b.n) <= n)
            whole++;
        assert_int_equal(seen.n, whole);
    }
    buf_deinit(&b);
}

static void test_random_payloads_are_refused_or_decoded(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 3);
    uint8_t bytes[200];
    struct arena a = {0};
    for (int i = 0; i < 20000; i++) {
        size_t n = rng_below(&rng, sizeof bytes);
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)(rng_chance(&rng, 0.5) ? rng_below(&rng, 4) : rng_next(&rng));
        struct wal_content c;
        struct wal_record r = {.type = 1 + (uint32_t)rng_below(&rng, 4), .bytes = (uint32_t)n};
        err_free(wal_record_decode(&r, bytes, &a, &c));
        arena_reset(&a);
    }
    arena_deinit(&a);
}

struct writer {
    struct wal *w;
    pthread_mutex_t *lock;
    _Atomic uint64_t *seq;
};

static void *write_many(void *arg)
{
    struct writer *x = arg;
    for (int i = 0; i < 8; i++) {
        struct buf b = {0};
        pthread_mutex_lock(x->lock);
        uint64_t seq = ++*x->seq;
        put_batch(&b, seq, 3);
        wal_put(x->w, seq, &b);
        pthread_mutex_unlock(x->lock);
        buf_deinit(&b);
        assert_null(wal_wait(x->w, seq));
    }
    return NULL;
}

static void test_group_commit_and_retire(void **state)
{
    (void)state;
    struct wal_options o = {.env = env_posix(), .dir = dir, .sync = WAL_SYNC_ALWAYS, .generation = 5};
    struct wal *w;
    assert_null(wal_open(&o, &w));
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    _Atomic uint64_t seq = 0;
    struct writer x = {w, &lock, &seq};
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_create(&threads[i], NULL, write_many, &x);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    char path[128];
    wal_path(path, sizeof path, dir, 5);
    struct seen seen = {0};
    struct wal_scan scan;
    assert_null(wal_read(env_posix(), path, check_record, &seen, &scan));
    assert_int_equal(seen.n, 32);
    for (size_t i = 0; i < seen.n; i++)
        assert_int_equal(seen.seqs[i], i + 1);
    assert_int_equal(wal_rotate(w), 6);
    assert_null(wal_retire(w, 6));
    assert_int_not_equal(access(path, F_OK), 0);
    wal_close(w);
}

static void flip(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    fseek(f, at, SEEK_SET);
    int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 1, f);
    fclose(f);
}

static void test_manifest_round_trip_and_damage(void **state)
{
    (void)state;
    struct matcher m;
    assert_null(matcher_init(&m, MATCH_RE, STR("job"), STR("a|b.*")));
    struct tombstone *t;
    assert_null(tombstone_create(77, -5, 1000, &m, 1, &t));
    struct manifest_part parts[2] = {
        {.meta = {.id = 3, .partition = -2, .seq_min = 1, .seq_max = 9, .t_min = -7, .samples = 4}},
        {.meta = {.id = 4, .partition = 672, .level = 2, .bytes = 99}, .clean_seq = 8}};
    struct manifest out = {.generation = 4,
                           .next_part = 9,
                           .seq = 123,
                           .wal_floor = 7,
                           .parts = parts,
                           .n_parts = 2,
                           .tombstones = &t,
                           .n_tombstones = 1};
    assert_null(manifest_write(env_posix(), dir, &out));
    struct manifest in;
    assert_null(manifest_read(env_posix(), dir, "MANIFEST", &in));
    assert_int_equal(in.n_parts, 2);
    assert_memory_equal(&in.parts[0].meta, &parts[0].meta, sizeof parts[0].meta);
    assert_int_equal(in.parts[1].clean_seq, 8);
    assert_int_equal(in.tombstones[0]->seq, 77);
    assert_int_equal(in.tombstones[0]->t_min, -5);
    assert_true(str_eq(in.tombstones[0]->m[0].value, STR("a|b.*")));
    manifest_deinit(&in);

    struct stat st;
    char path[128];
    snprintf(path, sizeof path, "%s/MANIFEST", dir);
    assert_int_equal(stat(path, &st), 0);
    flip(path, 20);
    assert_ok(manifest_read(env_posix(), dir, "MANIFEST", &in)); /* the other copy serves */
    manifest_deinit(&in);
    assert_err(manifest_verify(env_posix(), dir), ERR_CORRUPT);
    flip(path, st.st_size / 2 + 20);
    assert_err(manifest_read(env_posix(), dir, "MANIFEST", &in), ERR_CORRUPT);
    manifest_deinit(&in);
    tombstone_unref(t);
    matcher_deinit(&m);
}

static void test_sample_set_settles(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 11);
    for (int round = 0; round < 300; round++) {
        struct sample_set s = {0};
        double last[64];
        bool there[64] = {false};
        size_t n = rng_below(&rng, 200), distinct = 0;
        for (size_t i = 0; i < n; i++) {
            int64_t t = (int64_t)rng_below(&rng, 64);
            if (rng_chance(&rng, 0.2))
                sample_set_push_hist(&s, t, (double)i, STR("h"));
            else
                sample_set_push(&s, t, (double)i);
            distinct += !there[t];
            there[t] = true;
            last[t] = (double)i;
        }
        sample_set_settle(&s);
        assert_int_equal(s.n, distinct);
        for (size_t i = 0; i < s.n; i++) {
            assert_true(i == 0 || s.t[i] > s.t[i - 1]);
            assert_true(s.v[i] == last[s.t[i]]);
        }
        sample_set_deinit(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage_costs_one_record), cmocka_unit_test(test_random_payloads_are_refused_or_decoded),
        cmocka_unit_test(test_group_commit_and_retire), cmocka_unit_test(test_manifest_round_trip_and_damage),
        cmocka_unit_test(test_sample_set_settles),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
