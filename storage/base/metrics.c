/*
 * metrics.c: the registry and its text exposition.
 *
 * A family is one name: kind, help and its series in order of registration. A series is a counter, a
 * gauge, a histogram or a callback, with its constant labels as text. Registering the same name and
 * labels again yields the same metric (a callback is replaced), so a database can be closed and
 * opened again under one registry.
 *
 * Each value starts a cache line of its own, so threads that count different things don't disturb
 * each other. Values are relaxed atomics: each is exact, a print may see them at different moments.
 * Histograms sum whole nanoseconds, which an integer adds exactly.
 *
 * The lists are guarded by the registry's lock, which is held while callbacks run: a callback must
 * not register. The registry owns all metrics; those of "no registry" live in one shared for the
 * process, so their memory is bounded by the number of different names.
 */
#include "storage/base/metrics.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/num.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#define CACHE_LINE 64

struct counter {
    _Atomic uint64_t value;
};

struct gauge {
    _Atomic int64_t value;
};

static const char *const bucket_names[] = {"0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01",
                                           "0.025",  "0.05",    "0.1",    "0.25",  "0.5",    "1",     "2.5",
                                           "5",      "10",      "25",     "50",    "100",    "+Inf"};
static const double bucket_bounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                       0.25,   0.5,     1,      2.5,   5,      10,    25,   50,    100,  INFINITY};
#define BUCKETS ARRAY_LEN(bucket_bounds)

struct histogram {
    _Atomic uint64_t sum_ns;
    _Atomic uint64_t buckets[BUCKETS]; /* not cumulative; the last is +Inf */
};

struct series {
    char *labels; /* owned; "" = none */
    void *block;  /* heap, owned: the value lies in it at a cache line's start */
    void *value;  /* struct counter, gauge or histogram; NULL for a callback */
    metrics_read_fn read;
    void *arg;
};

struct family {
    const char *kind; /* one of the literals below */
    char *name, *help;
    struct series *series;
    size_t n, cap;
};

struct metrics {
    pthread_mutex_t lock;
    struct family *families; /* guarded by lock, with all below */
    size_t n, cap;
};

static struct metrics unregistered = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* see the file's head */

struct metrics *metrics_create(void)
{
    struct metrics *m = mem_zalloc(sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

static void family_deinit(struct family *f)
{
    for (size_t i = 0; i < f->n; i++) {
        mem_free(f->series[i].labels);
        mem_free(f->series[i].block);
    }
    mem_free(f->series);
    mem_free(f->name);
    mem_free(f->help);
}

void metrics_destroy(struct metrics *m)
{
    if (!m) return;
    for (size_t i = 0; i < m->n; i++)
        family_deinit(&m->families[i]);
    mem_free(m->families);
    pthread_mutex_destroy(&m->lock);
    mem_free(m);
}

/* ---- registration */

static struct family *family_locked(struct metrics *m, const char *kind, const char *name, const char *help)
{
    for (size_t i = 0; i < m->n; i++) {
        struct family *f = &m->families[i];
        if (strcmp(f->name, name) != 0) continue;
        check(strcmp(f->kind, kind) == 0); /* one name, one kind */
        return f;
    }
    m->families = mem_grow(m->families, &m->cap, m->n + 1, sizeof *m->families);
    struct family *f = &m->families[m->n++];
    *f = (struct family){.kind = kind, .name = mem_dup_str(str_of(name)), .help = mem_dup_str(str_of(help))};
    return f;
}

static struct series *series_locked(struct family *f, const char *labels)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->series[i].labels, labels) == 0) return &f->series[i];
    f->series = mem_grow(f->series, &f->cap, f->n + 1, sizeof *f->series);
    f->series[f->n] = (struct series){.labels = mem_dup_str(str_of(labels))};
    return &f->series[f->n++];
}

static void *register_value(struct metrics *m, const char *kind, const char *name, const char *labels, const char *help,
                            size_t size)
{
    if (!m) m = &unregistered;
    pthread_mutex_lock(&m->lock);
    struct series *s = series_locked(family_locked(m, kind, name, help), labels ? labels : "");
    if (!s->value) {
        /* whole lines, from a line's start: no neighbour shares one */
        size_t lines = (size + CACHE_LINE - 1) / CACHE_LINE + 1;
        s->block = mem_zalloc(lines * CACHE_LINE);
        s->value = (char *)s->block + (CACHE_LINE - (uintptr_t)s->block % CACHE_LINE) % CACHE_LINE;
    }
    void *value = s->value;
    pthread_mutex_unlock(&m->lock);
    return value;
}

struct counter *metrics_counter(struct metrics *m, const char *name, const char *labels, const char *help)
{
    return register_value(m, "counter", name, labels, help, sizeof(struct counter));
}

struct gauge *metrics_gauge(struct metrics *m, const char *name, const char *labels, const char *help)
{
    return register_value(m, "gauge", name, labels, help, sizeof(struct gauge));
}

struct histogram *metrics_histogram(struct metrics *m, const char *name, const char *labels, const char *help)
{
    return register_value(m, "histogram", name, labels, help, sizeof(struct histogram));
}

void metrics_callback(struct metrics *m, const char *kind, const char *name, const char *labels, const char *help,
                      metrics_read_fn read, void *arg)
{
    if (!m) return;
    bool counts = strcmp(kind, "counter") == 0;
    check(counts || strcmp(kind, "gauge") == 0);
    pthread_mutex_lock(&m->lock);
    struct family *f = family_locked(m, counts ? "counter" : "gauge", name, help);
    struct series *s = series_locked(f, labels ? labels : "");
    check(!s->value);
    s->read = read;
    s->arg = arg;
    pthread_mutex_unlock(&m->lock);
}

/* ---- counting */

void counter_add(struct counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(&c->value, n, memory_order_relaxed);
}

uint64_t counter_value(const struct counter *c)
{
    return atomic_load_explicit(&c->value, memory_order_relaxed);
}

void gauge_set(struct gauge *g, int64_t v)
{
    atomic_store_explicit(&g->value, v, memory_order_relaxed);
}

void gauge_add(struct gauge *g, int64_t v)
{
    atomic_fetch_add_explicit(&g->value, v, memory_order_relaxed);
}

int64_t gauge_value(const struct gauge *g)
{
    return atomic_load_explicit(&g->value, memory_order_relaxed);
}

void histogram_observe(struct histogram *h, double seconds)
{
    if (isnan(seconds)) return;
    if (seconds < 0) seconds = 0; /* a clock that stepped back */
    if (seconds > 1e9) seconds = 1e9;
    size_t i = 0;
    while (seconds > bucket_bounds[i])
        i++;
    atomic_fetch_add_explicit(&h->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_ns, (uint64_t)(seconds * 1e9 + 0.5), memory_order_relaxed);
}

/* ---- text exposition */

static void print_help(const struct family *f, struct buf *out)
{
    buf_printf(out, "# HELP %s ", f->name);
    for (const char *p = f->help; *p; p++) {
        if (*p == '\n')
            buf_str(out, STR("\\n"));
        else if (*p == '\\')
            buf_str(out, STR("\\\\"));
        else
            buf_u8(out, (uint8_t)*p);
    }
    buf_printf(out, "\n# TYPE %s %s\n", f->name, f->kind);
}

static void print_double(double v, struct buf *out)
{
    char *to = (char *)buf_reserve(out, NUM_DOUBLE_MAX);
    if (to) out->n += num_format_double_short(v, to);
}

/* name{labels} and the blank before the value; `le` NULL or one more label. */
static void print_name(const struct family *f, const char *suffix, const char *labels, const char *le, struct buf *out)
{
    buf_printf(out, "%s%s", f->name, suffix);
    if (labels[0] || le) {
        buf_printf(out, "{%s", labels);
        if (le) buf_printf(out, "%sle=\"%s\"", labels[0] ? "," : "", le);
        buf_u8(out, '}');
    }
    buf_u8(out, ' ');
}

static void print_histogram(const struct family *f, const struct series *s, struct buf *out)
{
    const struct histogram *h = s->value;
    uint64_t total = 0;
    double sum = (double)atomic_load_explicit(&h->sum_ns, memory_order_relaxed) / 1e9;
    for (size_t i = 0; i < BUCKETS; i++) {
        total += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        print_name(f, "_bucket", s->labels, bucket_names[i], out);
        buf_printf(out, "%llu\n", (unsigned long long)total);
    }
    print_name(f, "_sum", s->labels, NULL, out);
    print_double(sum, out);
    buf_u8(out, '\n');
    print_name(f, "_count", s->labels, NULL, out);
    buf_printf(out, "%llu\n", (unsigned long long)total);
}

static void print_series(const struct family *f, const struct series *s, struct buf *out)
{
    if (f->kind[0] == 'h') {
        print_histogram(f, s, out);
        return;
    }
    print_name(f, "", s->labels, NULL, out);
    if (s->read)
        print_double(s->read(s->arg), out);
    else if (f->kind[0] == 'c')
        buf_printf(out, "%llu", (unsigned long long)counter_value(s->value));
    else
        buf_printf(out, "%lld", (long long)gauge_value(s->value));
    buf_u8(out, '\n');
}

void metrics_print(struct metrics *m, struct buf *out)
{
    if (!m) return;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n; i++) {
        print_help(&m->families[i], out);
        for (size_t k = 0; k < m->families[i].n; k++)
            print_series(&m->families[i], &m->families[i].series[k], out);
    }
    pthread_mutex_unlock(&m->lock);
}
