/*
 * quick.h: which queries are so short that handing them to a worker would cost more than running them.
 *
 * Two thread hand-overs cost more than most panels do. So the server remembers, by the shape of a query
 * (its text without the contents of strings, its range and step), how long it took last; shapes that were
 * quick run on the loop, under a short timeout, and go to the workers when that was wrong. A guess only:
 * entries may overwrite each other. Any thread.
 */
#ifndef VARVE_SERVER_QUICK_H
#define VARVE_SERVER_QUICK_H

#include "server/exchange.h"

#define QUICK_TIMEOUT_MS 20 /* what a query on a loop may take before it is begun again on a worker */

struct quick;
struct quick *quick_create(void);
void quick_destroy(struct quick *q); /* NULL allowed */

/* The shape of a query's arguments; 0: it is not remembered (too long). */
uint64_t quick_shape(const struct exchange *x);
/* The same for a call about series and labels. Those have no timeout, so only the very same question is alike. */
uint64_t quick_shape_meta(const struct exchange *x);
bool quick_expected(const struct quick *q, uint64_t shape); /* NULL expects nothing, below remembers nothing */
void quick_note(struct quick *q, uint64_t shape, uint64_t ns);

#endif
