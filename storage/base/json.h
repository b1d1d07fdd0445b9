/*
 * json.h: a streaming JSON writer on a buf: commas and nesting are its business, memory is the buf's.
 *
 * Strings are escaped as Go's encoding/json without HTML escaping does; invalid UTF-8 becomes U+FFFD.
 * Misnesting is a programmer's error (check). Not thread-safe.
 */
#ifndef VARVE_STORAGE_BASE_JSON_H
#define VARVE_STORAGE_BASE_JSON_H

#include "storage/base/buf.h"

#define JSON_DEPTH_MAX 64

struct json {
    struct buf *out; /* borrowed */
    int depth;
    bool comma[JSON_DEPTH_MAX]; /* the next value at this depth needs a comma before it */
    bool after_key;
};

static inline void json_init(struct json *j, struct buf *out)
{
    *j = (struct json){.out = out};
}
void json_object(struct json *j);
void json_object_end(struct json *j);
void json_array(struct json *j);
void json_array_end(struct json *j);
void json_key(struct json *j, const char *key); /* plain ASCII literal */
void json_key_str(struct json *j, str key);     /* any bytes */
void json_str(struct json *j, str s);
void json_cstr(struct json *j, const char *s);
void json_i64(struct json *j, int64_t v);
void json_u64(struct json *j, uint64_t v);
void json_double(struct json *j, double v); /* shortest digits; NaN and Inf become strings */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
void json_sample_value(struct json *j, double v); /* "0.5", "1e-07": a double as a string, as Prometheus does */
void json_ms(struct json *j, int64_t ms);         /* 1700000000.123: seconds, as Prometheus does */
void json_raw(struct json *j, str s);             /* one ready-made value */

#endif
