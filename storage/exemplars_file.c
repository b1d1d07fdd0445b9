/*
 * exemplars_file.c: the ring of exemplars as a file and back (the layout is in exemplars.h).
 *
 * The file is written before the log segments go that its exemplars are in, so what was acknowledged is in one of
 * both. Reading trusts nothing: the checksum first, then every count against what is left.
 */
#include <inttypes.h>
#include <stdio.h>

#include "storage/base/alloc.h"
#include "storage/exemplars_internal.h"
#include "storage/whole_file.h"

static const char MAGIC[8] = "VRVEXM01";
#define VERSION 1
#define BYTES_MAX ((size_t)4 << 30)

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void encode_labels(const struct labels *ls, struct buf *out)
{
    buf_varint(out, ls->n);
    for (uint32_t i = 0; i < ls->n; i++) {
        buf_lenstr(out, ls->v[i].name);
        buf_lenstr(out, ls->v[i].value);
    }
}

/* Under the lock. Series get numbers in the order of their oldest entries. */
static void encode(const struct exemplars *e, struct buf *out)
{
    uint64_t n_series = 0;
    buf_put(out, MAGIC, sizeof MAGIC);
    buf_u32(out, VERSION);
    buf_varint(out, e->seq);
    buf_varint(out, e->series.n);
    for (uint64_t k = e->first; k < e->next; k++) {
        struct ring_series *s = exemplars_entry(e, k)->series;
        if (s->oldest != k) continue;
        s->written = n_series++;
        encode_labels(&s->labels, out);
    }
    buf_varint(out, e->next - e->first);
    for (uint64_t k = e->first; k < e->next; k++) {
        const struct ring_entry *entry = exemplars_entry(e, k);
        buf_varint(out, entry->series->written);
        exemplar_encode(entry->x, out);
    }
    buf_u64(out, checksum64(out->data, out->n));
}

err exemplars_save(struct exemplars *e, struct env *env, const char *dir, bool always)
{
    struct buf b = {0};
    pthread_mutex_lock(&e->lock);
    uint64_t seq = e->seq;
    bool wanted = seq > 0 && (always || seq != e->saved_seq);
    if (wanted) encode(e, &b);
    pthread_mutex_unlock(&e->lock);
    err failure = NULL;
    if (wanted) failure = whole_file_replace(env, dir, EXEMPLARS_FILE, NULL, &b);
    if (wanted && !always && failure == NULL) e->saved_seq = seq;
    buf_deinit(&b);
    return err_wrap(failure, "writing the exemplars");
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* A file decoded: arrays in the arena, strings in its bytes. */
struct decoded {
    uint64_t seq, n_series, n_exemplars;
    struct labels *series;
    struct exemplar *exemplars;
    uint64_t *series_of; /* of each exemplar */
};

/* A count of things of at least `bytes` bytes each. */
static uint64_t read_count(struct cursor *c, size_t bytes)
{
    uint64_t n = cursor_varint(c);
    if (n > cursor_left(c) / bytes) c->failed = true;
    return c->failed ? 0 : n;
}

static struct labels decode_labels(struct cursor *c, struct arena *a)
{
    uint64_t n = read_count(c, 2);
    struct labels ls = {arena_alloc(a, n * sizeof(struct label) + 1), (uint32_t)n};
    for (uint64_t i = 0; i < n; i++) {
        ls.v[i].name = cursor_lenstr(c);
        ls.v[i].value = cursor_lenstr(c);
    }
    return ls;
}

static err decode(const struct buf *b, struct arena *a, struct decoded *d)
{
    if (b->n < sizeof MAGIC + 12 || memcmp(b->data, MAGIC, sizeof MAGIC) != 0)
        return err_corrupt("not a file of exemplars");
    struct cursor sum = cursor_of(b->data + b->n - 8, 8);
    if (cursor_u64(&sum) != checksum64(b->data, b->n - 8)) return err_corrupt("checksum mismatch");
    struct cursor c = cursor_of(b->data + sizeof MAGIC, b->n - sizeof MAGIC - 8);
    uint32_t version = cursor_u32(&c);
    if (version != VERSION) return err_new(ERR_UNSUPPORTED, "version %u, this server knows %d", version, VERSION);
    *d = (struct decoded){.seq = cursor_varint(&c), .n_series = read_count(&c, 1)};
    d->series = arena_alloc(a, d->n_series * sizeof *d->series + 1);
    for (uint64_t i = 0; i < d->n_series && !c.failed; i++)
        d->series[i] = decode_labels(&c, a);
    d->n_exemplars = read_count(&c, 1 + EXEMPLAR_BYTES_MIN);
    d->exemplars = arena_alloc(a, d->n_exemplars * sizeof *d->exemplars + 1);
    d->series_of = arena_alloc(a, d->n_exemplars * sizeof *d->series_of + 1);
    for (uint64_t i = 0; i < d->n_exemplars && !c.failed; i++) {
        d->series_of[i] = cursor_varint(&c);
        if (d->series_of[i] >= d->n_series) c.failed = true;
        exemplar_decode(&c, a, &d->exemplars[i]);
    }
    return c.failed || cursor_left(&c) > 0 ? err_corrupt("malformed") : NULL;
}

static err read_file(struct env *env, const char *path, struct buf *b, struct arena *a, struct decoded *d)
{
    TRY(whole_file_read(env, path, BYTES_MAX, b));
    return err_wrap(decode(b, a, d), "%s", path);
}

err exemplars_load(struct exemplars *e, struct env *env, const char *dir)
{
    char path[4096];
    struct buf b = {0};
    struct arena a = {0};
    struct decoded d = {0};
    snprintf(path, sizeof path, "%s/%s", dir, EXEMPLARS_FILE);
    err failure = read_file(env, path, &b, &a, &d);
    for (uint64_t i = 0; failure == NULL && i < d.n_exemplars; i++)
        exemplars_add(e, &d.series[d.series_of[i]], &d.exemplars[i], d.seq);
    if (failure == NULL) e->saved_seq = e->seq = d.seq;
    arena_deinit(&a);
    buf_deinit(&b);
    if (err_code(failure) != ERR_NOT_FOUND) return failure;
    err_free(failure);
    return NULL;
}

static void print(const struct decoded *d, int detail, struct buf *out)
{
    buf_printf(out, "exemplars seq=%" PRIu64 " series=%" PRIu64 " exemplars=%" PRIu64 "\n", d->seq, d->n_series,
               d->n_exemplars);
    for (uint64_t i = 0; detail > 0 && i < d->n_exemplars; i++) {
        const struct exemplar *x = &d->exemplars[i];
        labels_print(&d->series[d->series_of[i]], out);
        buf_str(out, STR(" # "));
        labels_print(&x->labels, out);
        buf_printf(out, " %.17g %" PRId64 "\n", x->v, x->t);
    }
}

err exemplars_inspect(struct env *env, const char *path, int detail, struct buf *out)
{
    struct buf b = {0};
    struct arena a = {0};
    struct decoded d = {0};
    err failure = read_file(env, path, &b, &a, &d);
    if (failure == NULL) print(&d, detail, out);
    arena_deinit(&a);
    buf_deinit(&b);
    return failure;
}
