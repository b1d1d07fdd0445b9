/*
 * metrics.h: one registry of counters, gauges and histograms, printed in the Prometheus text format.
 *
 * A metric is registered once, at start, with its help; incrementing is an atomic add. Several
 * metrics of one name differ by their constant labels, given as text: `protocol="remote_write"`.
 * Registration returns a pointer that lives as long as the registry. A NULL registry is allowed
 * everywhere and yields a metric that counts but is shown nowhere. Any thread.
 */
#ifndef VARVE_STORAGE_BASE_METRICS_H
#define VARVE_STORAGE_BASE_METRICS_H

#include "storage/base/buf.h"

struct metrics;
struct counter;   /* a monotonic double-free uint64 */
struct gauge;     /* an int64 */
struct histogram; /* seconds, fixed exponential buckets 100 µs .. 100 s */

struct metrics *metrics_create(void);
void metrics_destroy(struct metrics *m);

struct counter *metrics_counter(struct metrics *m, const char *name, const char *labels, const char *help);
struct gauge *metrics_gauge(struct metrics *m, const char *name, const char *labels, const char *help);
struct histogram *metrics_histogram(struct metrics *m, const char *name, const char *labels, const char *help);

/* A value computed when printed. kind: "counter" or "gauge". */
typedef double (*metrics_read_fn)(void *arg);
void metrics_callback(struct metrics *m, const char *kind, const char *name, const char *labels, const char *help,
                      metrics_read_fn read, void *arg);

void counter_add(struct counter *c, uint64_t n);
static inline void counter_inc(struct counter *c)
{
    counter_add(c, 1);
}
uint64_t counter_value(const struct counter *c);
void gauge_set(struct gauge *g, int64_t v);
void gauge_add(struct gauge *g, int64_t v);
int64_t gauge_value(const struct gauge *g);
void histogram_observe(struct histogram *h, double seconds);

/* Appends the text exposition, metrics of one name together under one HELP and TYPE. */
void metrics_print(struct metrics *m, struct buf *out);

#endif
