/*
 * labels.h: label sets as values.
 *
 * A `labels` is a borrowed array of name/value pairs. Canonical means: sorted by name (byte order),
 * names unique and not empty, values not empty, all valid UTF-8. The metric name is the pair with
 * the name "__name__". Strings and array live in the caller's arena or in a part's or registry's memory.
 */
#ifndef VARVE_STORAGE_LABELS_H
#define VARVE_STORAGE_LABELS_H

#include "storage/base/arena.h"
#include "storage/base/buf.h"
#include "storage/base/hash.h"

struct label {
    str name, value;
};

struct labels {
    struct label *v;
    uint32_t n;
};

#define LABEL_NAME STR("__name__")

/* Sorts in place, drops empty values, then checks what canonical means and the limits of limits.h.
 * A metric name is not demanded here. ERR_INVALID names the label and what is wrong with it. */
err labels_canonicalize(struct labels *ls) __attribute__((warn_unused_result));
/* True if s is well-formed UTF-8 (no surrogates, no overlong forms). */
bool utf8_valid(str s);
/* Writes a code point as UTF-8 (room for 4 bytes), returns its length. */
size_t utf8_put(char *out, uint32_t rune);

str labels_get(const struct labels *ls, str name); /* n = 0 if absent */
/* Prometheus's order of results: pair by pair, name then value, fewer pairs first. Both canonical. */
int labels_cmp(const struct labels *a, const struct labels *b);
bool labels_eq(const struct labels *a, const struct labels *b);
/* The order of series inside a part: metric name, then "job", then "instance" (absent sorts first),
 * then labels_cmp. */
int labels_cmp_storage(const struct labels *a, const struct labels *b);
struct labels labels_copy(struct arena *a, const struct labels *ls);
/* Identity: the sum over pairs of hash128_pair(hash128(name), hash128(value)); order does not matter. */
struct hash128 labels_id(const struct hash_key *key, const struct labels *ls);
/* {__name__="up", job="x"} as text: up{job="x"}; UTF-8 names quoted as Prometheus 3 does. */
void labels_print(const struct labels *ls, struct buf *out);
/* [a-zA-Z_][a-zA-Z0-9_]*, and with ':' for metric names. */
bool label_name_is_legacy(str name);
bool metric_name_is_legacy(str name);
/* s in double quotes, escaped; and a label name, quoted only if it has to be. */
void label_print_quoted(str s, struct buf *out);
void label_print_name(str name, struct buf *out);

#endif
