/*
 * functions.c: the one table of PromQL functions, as Prometheus 3.14 defines them, and default_rollup of MetricsQL,
 * by which vmalert restores the state of its alerts.
 *
 * Invariants: sorted by name (function_find bisects; test_check proves it), names lower case, and each
 * row's code belongs to its class. The table is constant: no memory, any thread.
 */
#include "query/functions.h"

/* short names for the columns of the table */
#define V TYPE_VECTOR
#define M TYPE_MATRIX
#define N TYPE_SCALAR
#define S TYPE_STRING
enum { STABLE = false, EXPERIMENTAL = true };

/* name, class, result, n_types, variadic, types, experimental, code */
/* clang-format off */
static const struct function TABLE[] = {
    {"abs", FN_MAP, V, 1, 0, {V}, STABLE, MAP_ABS},
    {"absent", FN_SPECIAL, V, 1, 0, {V}, STABLE, SPECIAL_ABSENT},
    {"absent_over_time", FN_SPECIAL, V, 1, 0, {M}, STABLE, SPECIAL_ABSENT_OVER_TIME},
    {"acos", FN_MAP, V, 1, 0, {V}, STABLE, MAP_ACOS},
    {"acosh", FN_MAP, V, 1, 0, {V}, STABLE, MAP_ACOSH},
    {"asin", FN_MAP, V, 1, 0, {V}, STABLE, MAP_ASIN},
    {"asinh", FN_MAP, V, 1, 0, {V}, STABLE, MAP_ASINH},
    {"atan", FN_MAP, V, 1, 0, {V}, STABLE, MAP_ATAN},
    {"atanh", FN_MAP, V, 1, 0, {V}, STABLE, MAP_ATANH},
    {"avg_over_time", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_AVG},
    {"ceil", FN_MAP, V, 1, 0, {V}, STABLE, MAP_CEIL},
    {"changes", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_CHANGES},
    {"clamp", FN_MAP, V, 3, 0, {V, N, N}, STABLE, MAP_CLAMP},
    {"clamp_max", FN_MAP, V, 2, 0, {V, N}, STABLE, MAP_CLAMP_MAX},
    {"clamp_min", FN_MAP, V, 2, 0, {V, N}, STABLE, MAP_CLAMP_MIN},
    {"cos", FN_MAP, V, 1, 0, {V}, STABLE, MAP_COS},
    {"cosh", FN_MAP, V, 1, 0, {V}, STABLE, MAP_COSH},
    {"count_over_time", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_COUNT},
    {"day_of_month", FN_DATE, V, 1, 1, {V}, STABLE, DATE_DAY_OF_MONTH},
    {"day_of_week", FN_DATE, V, 1, 1, {V}, STABLE, DATE_DAY_OF_WEEK},
    {"day_of_year", FN_DATE, V, 1, 1, {V}, STABLE, DATE_DAY_OF_YEAR},
    {"days_in_month", FN_DATE, V, 1, 1, {V}, STABLE, DATE_DAYS_IN_MONTH},
    {"default_rollup", FN_SPECIAL, V, 1, 0, {M}, STABLE, SPECIAL_DEFAULT_ROLLUP},
    {"deg", FN_MAP, V, 1, 0, {V}, STABLE, MAP_DEG},
    {"delta", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_DELTA},
    {"deriv", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_DERIV},
    {"double_exponential_smoothing", FN_ROLLUP, V, 3, 0, {M, N, N}, EXPERIMENTAL, ROLLUP_DOUBLE_EXPONENTIAL},
    {"end", FN_SPECIAL, N, 0, 0, {TYPE_NONE}, EXPERIMENTAL, SPECIAL_END},
    {"exp", FN_MAP, V, 1, 0, {V}, STABLE, MAP_EXP},
    {"first_over_time", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_FIRST},
    {"floor", FN_MAP, V, 1, 0, {V}, STABLE, MAP_FLOOR},
    {"histogram_avg", FN_MAP, V, 1, 0, {V}, STABLE, MAP_HISTOGRAM_AVG},
    {"histogram_count", FN_MAP, V, 1, 0, {V}, STABLE, MAP_HISTOGRAM_COUNT},
    {"histogram_fraction", FN_SPECIAL, V, 3, 0, {N, N, V}, STABLE, SPECIAL_HISTOGRAM_FRACTION},
    {"histogram_quantile", FN_SPECIAL, V, 2, 0, {N, V}, STABLE, SPECIAL_HISTOGRAM_QUANTILE},
    {"histogram_quantiles", FN_SPECIAL, V, 4, 9, {V, S, N, N}, EXPERIMENTAL, SPECIAL_HISTOGRAM_QUANTILES},
    {"histogram_stddev", FN_MAP, V, 1, 0, {V}, STABLE, MAP_HISTOGRAM_STDDEV},
    {"histogram_stdvar", FN_MAP, V, 1, 0, {V}, STABLE, MAP_HISTOGRAM_STDVAR},
    {"histogram_sum", FN_MAP, V, 1, 0, {V}, STABLE, MAP_HISTOGRAM_SUM},
    {"hour", FN_DATE, V, 1, 1, {V}, STABLE, DATE_HOUR},
    {"idelta", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_IDELTA},
    {"increase", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_INCREASE},
    {"info", FN_SPECIAL, V, 2, 1, {V, V}, EXPERIMENTAL, SPECIAL_INFO},
    {"irate", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_IRATE},
    {"label_join", FN_SPECIAL, V, 4, -1, {V, S, S, S}, STABLE, SPECIAL_LABEL_JOIN},
    {"label_replace", FN_SPECIAL, V, 5, 0, {V, S, S, S, S}, STABLE, SPECIAL_LABEL_REPLACE},
    {"last_over_time", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_LAST},
    {"ln", FN_MAP, V, 1, 0, {V}, STABLE, MAP_LN},
    {"log10", FN_MAP, V, 1, 0, {V}, STABLE, MAP_LOG10},
    {"log2", FN_MAP, V, 1, 0, {V}, STABLE, MAP_LOG2},
    {"mad_over_time", FN_ROLLUP, V, 1, 0, {M}, EXPERIMENTAL, ROLLUP_MAD},
    {"max_of", FN_SPECIAL, N, 2, 0, {N, N}, EXPERIMENTAL, SPECIAL_MAX_OF},
    {"max_over_time", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_MAX},
    {"min_of", FN_SPECIAL, N, 2, 0, {N, N}, EXPERIMENTAL, SPECIAL_MIN_OF},
    {"min_over_time", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_MIN},
    {"minute", FN_DATE, V, 1, 1, {V}, STABLE, DATE_MINUTE},
    {"month", FN_DATE, V, 1, 1, {V}, STABLE, DATE_MONTH},
    {"pi", FN_SPECIAL, N, 0, 0, {TYPE_NONE}, STABLE, SPECIAL_PI},
    {"predict_linear", FN_ROLLUP, V, 2, 0, {M, N}, STABLE, ROLLUP_PREDICT_LINEAR},
    {"present_over_time", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_PRESENT},
    {"quantile_over_time", FN_ROLLUP, V, 2, 0, {N, M}, STABLE, ROLLUP_QUANTILE},
    {"rad", FN_MAP, V, 1, 0, {V}, STABLE, MAP_RAD},
    {"range", FN_SPECIAL, N, 0, 0, {TYPE_NONE}, EXPERIMENTAL, SPECIAL_RANGE},
    {"rate", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_RATE},
    {"resets", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_RESETS},
    {"round", FN_MAP, V, 2, 1, {V, N}, STABLE, MAP_ROUND},
    {"scalar", FN_SPECIAL, N, 1, 0, {V}, STABLE, SPECIAL_SCALAR},
    {"sgn", FN_MAP, V, 1, 0, {V}, STABLE, MAP_SGN},
    {"sin", FN_MAP, V, 1, 0, {V}, STABLE, MAP_SIN},
    {"sinh", FN_MAP, V, 1, 0, {V}, STABLE, MAP_SINH},
    {"sort", FN_SPECIAL, V, 1, 0, {V}, STABLE, SPECIAL_SORT},
    {"sort_by_label", FN_SPECIAL, V, 2, -1, {V, S}, EXPERIMENTAL, SPECIAL_SORT_BY_LABEL},
    {"sort_by_label_desc", FN_SPECIAL, V, 2, -1, {V, S}, EXPERIMENTAL, SPECIAL_SORT_BY_LABEL_DESC},
    {"sort_desc", FN_SPECIAL, V, 1, 0, {V}, STABLE, SPECIAL_SORT_DESC},
    {"sqrt", FN_MAP, V, 1, 0, {V}, STABLE, MAP_SQRT},
    {"start", FN_SPECIAL, N, 0, 0, {TYPE_NONE}, EXPERIMENTAL, SPECIAL_START},
    {"start_timestamp", FN_SPECIAL, V, 1, 0, {V}, EXPERIMENTAL, SPECIAL_START_TIMESTAMP},
    {"stddev_over_time", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_STDDEV},
    {"stdvar_over_time", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_STDVAR},
    {"step", FN_SPECIAL, N, 0, 0, {TYPE_NONE}, EXPERIMENTAL, SPECIAL_STEP},
    {"sum_over_time", FN_ROLLUP, V, 1, 0, {M}, STABLE, ROLLUP_SUM},
    {"tan", FN_MAP, V, 1, 0, {V}, STABLE, MAP_TAN},
    {"tanh", FN_MAP, V, 1, 0, {V}, STABLE, MAP_TANH},
    {"time", FN_SPECIAL, N, 0, 0, {TYPE_NONE}, STABLE, SPECIAL_TIME},
    {"timestamp", FN_SPECIAL, V, 1, 0, {V}, STABLE, SPECIAL_TIMESTAMP},
    {"ts_of_first_over_time", FN_ROLLUP, V, 1, 0, {M}, EXPERIMENTAL, ROLLUP_TS_OF_FIRST},
    {"ts_of_last_over_time", FN_ROLLUP, V, 1, 0, {M}, EXPERIMENTAL, ROLLUP_TS_OF_LAST},
    {"ts_of_max_over_time", FN_ROLLUP, V, 1, 0, {M}, EXPERIMENTAL, ROLLUP_TS_OF_MAX},
    {"ts_of_min_over_time", FN_ROLLUP, V, 1, 0, {M}, EXPERIMENTAL, ROLLUP_TS_OF_MIN},
    {"vector", FN_SPECIAL, V, 1, 0, {N}, STABLE, SPECIAL_VECTOR},
    {"year", FN_DATE, V, 1, 1, {V}, STABLE, DATE_YEAR},
};
/* clang-format on */

const struct function *function_table(size_t *n)
{
    *n = ARRAY_LEN(TABLE);
    return TABLE;
}

const struct function *function_find(str name)
{
    size_t low = 0, high = ARRAY_LEN(TABLE);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = str_cmp(name, str_of(TABLE[mid].name));
        if (order == 0) return &TABLE[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}
