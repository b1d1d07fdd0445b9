/*
 * api_answer.h: answers of the Prometheus HTTP API as a client reads them.
 *
 * Everything is checked as input from outside, since what answers may be any server. Strings are
 * slices of the text or copies in the arena: both must outlive what was parsed.
 */
#ifndef VARVE_SERVER_API_ANSWER_H
#define VARVE_SERVER_API_ANSWER_H

#include "storage/labels.h"

/* {"status", "data", "errorType", "error", "warnings", "infos"}; what is absent has n = 0. */
struct api_answer {
    bool success;
    str error_type, error;
    str data; /* raw JSON */
    str *warnings;
    size_t n_warnings;
    str *infos;
    size_t n_infos;
    uint64_t accepted, rejected; /* of a write */
};
/* ERR_INVALID: it is no JSON, or none of this shape. */
err api_answer_parse(str body, struct arena *a, struct api_answer *out) __attribute__((warn_unused_result));

struct api_sample {
    str t; /* number as sent: seconds since the epoch */
    str v; /* the value; of a histogram its count */
    str sum;
    bool histogram;
};

struct api_series {
    struct label *labels; /* sorted by name */
    size_t n_labels;
    struct api_sample *samples;
    size_t n_samples;
};

enum api_kind { API_SCALAR, API_STRING, API_VECTOR, API_MATRIX };

struct api_result {
    enum api_kind kind; /* a scalar or string is one series without labels */
    struct api_series *series;
    size_t n;
};
/* The data of query and query_range. */
err api_result_parse(str data, struct arena *a, struct api_result *out) __attribute__((warn_unused_result));
/* An array of strings: labels, label values. */
err api_strings_parse(str data, struct arena *a, str **out, size_t *n) __attribute__((warn_unused_result));
/* An array of label sets: series. Each becomes a series without samples. */
err api_series_parse(str data, struct arena *a, struct api_result *out) __attribute__((warn_unused_result));
/* The member `key` of an object, a string or an array of strings as raw JSON; n = 0 if it is not there. */
err api_member(str object, str key, struct arena *a, str *out) __attribute__((warn_unused_result));
/* A JSON string's text. */
err api_string_parse(str raw, struct arena *a, str *out) __attribute__((warn_unused_result));

/* Line and column (from 1) of the place in the query that a PromQL error names ("1:5: parse error: ..."). */
bool api_error_place(str error, uint32_t *line, uint32_t *column);

#endif
