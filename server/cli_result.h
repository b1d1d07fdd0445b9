/*
 * cli_result.h: results of queries as tables, lists and CSV.
 */
#ifndef VARVE_SERVER_CLI_RESULT_H
#define VARVE_SERVER_CLI_RESULT_H

#include "server/api_answer.h"

/*
 * Appends the result as a table: an instant vector with a column a label name, a matrix as one block a series; scalars
 * and strings as their value alone. Control characters are escaped. ERR_LIMIT: more label names than a table can have.
 */
err cli_result_table(const struct api_result *r, struct arena *a, bool bold, struct buf *out)
    __attribute__((warn_unused_result));
/* The same as CSV, one line a sample: label columns, timestamp (seconds, as sent), value. Histograms: count and sum. */
err cli_result_csv(const struct api_result *r, struct arena *a, struct buf *out) __attribute__((warn_unused_result));
/* Label sets alone as CSV. */
err cli_result_series_csv(const struct api_result *r, struct arena *a, struct buf *out)
    __attribute__((warn_unused_result));
/* One selector a line, sorted: what series lists. */
void cli_result_selectors(const struct api_result *r, struct buf *out);

#endif
