/*
 * hist_bucket.c: what is read out of histograms: buckets, quantiles, fractions, variance, text; and
 * trimming, which needs the buckets' bounds.
 *
 * Inside a bucket observations are taken to be spread evenly on a logarithmic scale (exponential
 * buckets) or a linear one (custom buckets, the zero bucket). Pure; memory from the caller's arena.
 * Source: Prometheus querying documentation, histogram_quantile and histogram_fraction.
 */
#include "query/histogram.h"

#include <float.h>
#include <math.h>

#include "query/rollup.h"
#include "storage/base/num.h"

/* 2^(1/2), 2^(1/4), ... 2^(1/256), with the last digits that make their products the bounds that everybody else prints:
 * the nearest doubles would give bounds that differ from Prometheus's by an ulp or two. */
static const double ROOTS[] = {0x1.6a09e667f3bccp+0, 0x1.306fe0a31b715p+0, 0x1.172b83c7d517bp+0, 0x1.0b5586cf9890fp+0,
                               0x1.059b0d3158574p+0, 0x1.02c9a3e778061p+0, 0x1.0163da9fb3335p+0, 0x1.00b1afa5abcbfp+0};

static double exponential_bound(int32_t index, int32_t schema)
{
    if (schema <= 0) {
        int64_t exponent = (int64_t)index * (INT64_C(1) << -schema);
        if (exponent == 1024) return DBL_MAX;
        if (exponent > 1024) return INFINITY;
        return exponent < -1100 ? 0 : ldexp(1, (int)exponent);
    }
    int32_t fraction = index & ((1 << schema) - 1), octave = index >> schema;
    if (fraction == 0 && octave == 1024) return DBL_MAX;
    double bound = 0.5;
    for (int32_t k = 0; k < schema; k++)
        if (fraction >> (schema - 1 - k) & 1) bound *= ROOTS[k];
    return ldexp(bound, octave + 1);
}

double hist_bound(int32_t index, int32_t schema, const double *custom, uint32_t n_custom)
{
    if (schema != HIST_SCHEMA_CUSTOM) return exponential_bound(index, schema);
    if (index < 0) return -INFINITY;
    return (uint32_t)index < n_custom ? custom[index] : INFINITY;
}

static struct hist_bucket bucket_of(const struct hist *h, int32_t index, double count, bool positive)
{
    double far = hist_bound(index, h->schema, h->custom, h->n_custom);
    double near = hist_bound(index - 1, h->schema, h->custom, h->n_custom);
    struct hist_bucket b = {.lower = positive ? near : -far, .upper = positive ? far : -near, .count = count};
    b.index = index;
    bool custom = hist_is_custom(h);
    b.lower_inclusive = custom ? index == 0 : b.lower < 0;
    b.upper_inclusive = custom || b.upper > 0;
    return b;
}

/* Appends a side's buckets, away from zero or, reversed, towards it. */
static size_t append_side(const struct hist *h, bool positive, bool reversed, struct hist_bucket *out)
{
    const struct hist_span *spans = positive ? h->positive_spans : h->negative_spans;
    uint32_t n_spans = positive ? h->n_positive_spans : h->n_negative_spans;
    const double *counts = positive ? h->positive : h->negative;
    uint32_t n = positive ? h->n_positive : h->n_negative, k = 0;
    int32_t index = 0;
    for (uint32_t i = 0; i < n_spans; i++) {
        index += spans[i].offset;
        for (uint32_t j = 0; j < spans[i].length && k < n; j++, index++, k++) {
            struct hist_bucket b = bucket_of(h, index, counts[k], positive);
            if (b.upper < 0 && b.upper > -h->zero_threshold) b.upper = -h->zero_threshold;
            if (b.lower > 0 && b.lower < h->zero_threshold) b.lower = h->zero_threshold;
            out[reversed ? n - 1 - k : k] = b;
        }
    }
    return k;
}

struct hist_bucket *hist_buckets(const struct hist *h, struct arena *a, size_t *n)
{
    struct hist_bucket *out = arena_alloc(a, (h->n_positive + h->n_negative + 2) * sizeof *out);
    *n = append_side(h, false, true, out);
    if (h->zero_count > 0)
        out[(*n)++] = (struct hist_bucket){.lower = -h->zero_threshold,
                                           .upper = h->zero_threshold,
                                           .count = h->zero_count,
                                           .lower_inclusive = true,
                                           .upper_inclusive = true};
    *n += append_side(h, true, false, out + *n);
    return out;
}

/* ---- quantile and fraction -------------------------------------------------------------------------------- */

/* A zero bucket reaches only to where observations are, if all others are on one side. */
static void fit_zero_bucket(const struct hist *h, struct hist_bucket *b)
{
    if (h->n_negative == 0 && h->n_positive > 0) b->lower = 0;
    if (h->n_positive == 0 && h->n_negative > 0) b->upper = 0;
}

/* The value a fraction of the way through a bucket. */
static double value_within(const struct hist *h, const struct hist_bucket *b, double fraction)
{
    if (hist_is_custom(h) || (b->lower <= 0 && b->upper >= 0)) return b->lower + (b->upper - b->lower) * fraction;
    double low = log2(fabs(b->lower)), high = log2(fabs(b->upper));
    if (b->lower > 0) return exp2(low + (high - low) * fraction);
    return -exp2(high + (low - high) * (1 - fraction));
}

/* Finds the bucket in which the rank falls, from below or from above; *count is what lies up to its end. */
static struct hist_bucket find_rank(const struct hist_bucket *b, size_t n, bool from_above, double rank, double *count,
                                    size_t *passed)
{
    struct hist_bucket found = {0};
    *count = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hist_bucket *x = &b[from_above ? n - 1 - i : i];
        *passed = i + 1;
        if (x->count == 0) continue;
        found = *x;
        *count += x->count;
        if (*count >= rank) break;
    }
    return found;
}

double hist_quantile(const struct hist *h, double q, struct arena *a, enum hist_nan_note *note)
{
    *note = HIST_NAN_NONE;
    if (q < 0) return -INFINITY;
    if (q > 1) return INFINITY;
    if (h->count == 0 || isnan(q)) return NAN;
    size_t n, passed = 0;
    const struct hist_bucket *buckets = hist_buckets(h, a, &n);
    /* a NaN observation counts, but is in no bucket; the sum tells that there is one */
    bool from_above = !isnan(h->sum) && q >= 0.5;
    double rank = (from_above ? 1 - q : q) * h->count, count;
    struct hist_bucket b = find_rank(buckets, n, from_above, rank, &count, &passed);
    if (hist_is_custom(h)) {
        if (b.lower == -INFINITY) {
            if (b.upper <= 0) return b.upper;
            b.lower = 0;
        } else if (b.upper == INFINITY) {
            return b.lower;
        }
    } else if (b.lower < 0 && b.upper > 0) {
        fit_zero_bucket(h, &b);
    }
    if (count > h->count) count = h->count;
    if (count < rank) {
        if (!isnan(h->sum)) return b.upper;
        *note = HIST_NAN_RESULT;
        return NAN;
    }
    double inside = from_above ? count - rank : rank - (count - b.count);
    if (isnan(h->sum)) {
        double total = count;
        for (size_t i = passed; i < n; i++)
            total += buckets[i].count;
        if (total < h->count) *note = HIST_NAN_SKEW;
    }
    return value_within(h, &b, inside / b.count);
}

/* How many observations lie up to v, which is inside the bucket; rank lie below the bucket. */
static double rank_within(const struct hist *h, const struct hist_bucket *b, double rank, double v, bool zero)
{
    if (hist_is_custom(h) || zero) {
        if (b->lower == -INFINITY) return b->count;
        return rank + b->count * (v - b->lower) / (b->upper - b->lower);
    }
    double low = log2(fabs(b->lower)), high = log2(fabs(b->upper)), at = log2(fabs(v));
    double fraction = v > 0 ? (at - low) / (high - low) : 1 - (at - high) / (low - high);
    return rank + b->count * fraction;
}

double hist_fraction(const struct hist *h, double lower, double upper, struct arena *a, enum hist_nan_note *note)
{
    *note = HIST_NAN_NONE;
    if (h->count == 0 || isnan(lower) || isnan(upper)) return NAN;
    if (isnan(h->sum)) *note = HIST_NAN_FRACTION;
    if (lower >= upper) return 0;
    size_t n;
    const struct hist_bucket *buckets = hist_buckets(h, a, &n);
    double bound[2] = {lower, upper}, found[2] = {0, 0}, rank = 0;
    bool set[2] = {false, false};
    for (size_t i = 0; i < n && !(set[0] && set[1]); i++) {
        struct hist_bucket b = buckets[i];
        bool zero = b.lower <= 0 && b.upper >= 0;
        if (zero && !hist_is_custom(h)) fit_zero_bucket(h, &b);
        if (hist_is_custom(h) && b.lower == -INFINITY && b.upper > 0) b.lower = 0;
        for (int k = 0; k < 2; k++) {
            if (set[k] || (b.lower < bound[k] && b.upper <= bound[k])) continue;
            found[k] = b.lower >= bound[k] ? rank : rank_within(h, &b, rank, bound[k], zero);
            set[k] = true;
        }
        rank += b.count;
    }
    double most = isnan(h->sum) ? rank : h->count;
    for (int k = 0; k < 2; k++)
        if (!set[k] || found[k] > most) found[k] = most;
    return (found[1] - found[0]) / h->count;
}

double hist_variance(const struct hist *h, struct arena *a)
{
    size_t n;
    const struct hist_bucket *b = hist_buckets(h, a, &n);
    double mean = h->sum / h->count;
    struct kahan sum = {0, 0};
    for (size_t i = 0; i < n; i++) {
        if (b[i].count == 0) continue;
        double v;
        if (hist_is_custom(h))
            v = (b[i].upper + b[i].lower) / 2;
        else if (b[i].lower <= 0 && b[i].upper >= 0)
            v = 0;
        else
            v = copysign(sqrt(b[i].upper * b[i].lower), b[i].upper);
        double delta = v - mean;
        kahan_add(&sum, b[i].count * delta * delta);
    }
    return (sum.sum + sum.c) / h->count;
}

/* ---- text ------------------------------------------------------------------------------------------------- */

static void print_number(struct buf *out, double v)
{
    char text[NUM_DOUBLE_MAX];
    buf_put(out, text, num_format_double_short(v, text));
}

void hist_print(const struct hist *h, struct buf *out, struct arena *a)
{
    size_t n;
    const struct hist_bucket *b = hist_buckets(h, a, &n);
    buf_printf(out, "{count:");
    print_number(out, h->count);
    buf_printf(out, ", sum:");
    print_number(out, h->sum);
    for (size_t i = 0; i < n; i++) {
        if (b[i].count == 0) continue;
        buf_printf(out, ", %c", b[i].lower_inclusive ? '[' : '(');
        print_number(out, b[i].lower);
        buf_u8(out, ',');
        print_number(out, b[i].upper);
        buf_printf(out, "%c:", b[i].upper_inclusive ? ']' : ')');
        print_number(out, b[i].count);
    }
    buf_u8(out, '}');
}

/* ---- trimming ------------------------------------------------------------------------------------------------ */

struct trim {
    double limit;
    bool upper; /* what is above goes; else what is below */
    bool custom;
    bool changed;
    double count, sum; /* of what stays; the sum from the middles of the kept parts */
};

/* Observations of a finite bucket up to the limit. */
static double count_up_to(const struct hist_bucket *b, double limit, bool positive, bool linear)
{
    if (limit <= b->lower) return 0;
    if (limit >= b->upper) return b->count;
    if (linear) return b->count * (limit - b->lower) / (b->upper - b->lower);
    double low = log2(fabs(b->lower)), high = log2(fabs(b->upper)), at = log2(fabs(limit));
    return b->count * (positive ? (at - low) / (high - low) : 1 - (at - high) / (low - high));
}

/* The lowest custom bucket: if it ends above zero it is taken to begin there; else nothing is known of its inside. */
static double keep_lowest(const struct trim *t, const struct hist_bucket *b, double *middle)
{
    bool from_zero = b->upper > 0 && !isinf(b->upper);
    *middle = from_zero ? b->upper / 2 : b->upper;
    if (t->upper) {
        if (t->limit >= b->upper) return b->count;
        if (b->upper <= 0 && t->limit != -INFINITY) {
            *middle = t->limit;
            return b->count;
        }
        *middle = t->limit / 2;
        return from_zero && t->limit > 0 ? b->count * t->limit / b->upper : 0;
    }
    if (t->limit == -INFINITY) return b->count;
    if (!from_zero || t->limit < 0 || t->limit >= b->upper) return 0;
    *middle = (t->limit + b->upper) / 2;
    return b->count * (1 - t->limit / b->upper);
}

/* The bucket up to infinity goes whole or stays whole. */
static double keep_highest(const struct trim *t, const struct hist_bucket *b, double *middle)
{
    *middle = t->upper || t->limit < b->lower ? b->lower : t->limit;
    return (t->limit == INFINITY) == t->upper ? b->count : 0;
}

static double keep_finite(const struct trim *t, const struct hist_bucket *b, bool positive, bool linear, double *middle)
{
    double under = count_up_to(b, t->limit, positive, linear);
    double low = t->upper ? b->lower : fmax(b->lower, t->limit);
    double high = t->upper ? fmin(b->upper, t->limit) : b->upper;
    if (linear)
        *middle = (low + high) / 2;
    else
        *middle = copysign(sqrt(fabs(low) * fabs(high)), positive ? 1 : -1);
    return t->upper ? under : b->count - under;
}

/* The new count of a bucket. */
static double trim_bucket(struct trim *t, const struct hist_bucket *b, bool positive, bool linear)
{
    if (b->count == 0) return 0;
    double middle, keep;
    if (isinf(b->lower))
        keep = keep_lowest(t, b, &middle);
    else if (isinf(b->upper))
        keep = keep_highest(t, b, &middle);
    else
        keep = keep_finite(t, b, positive, linear, &middle);
    t->changed = t->changed || keep != b->count;
    t->count += keep;
    if (keep != 0) t->sum += keep * middle;
    return keep;
}

static void trim_side(struct trim *t, struct hist *h, bool positive, struct arena *a)
{
    uint32_t n = positive ? h->n_positive : h->n_negative;
    double *counts = positive ? h->positive : h->negative;
    struct hist plain = *h; /* bounds as they are, not cut at the zero bucket */
    plain.zero_threshold = 0;
    struct hist_bucket *b = arena_alloc(a, (n + 1) * sizeof *b);
    append_side(&plain, positive, false, b);
    for (uint32_t i = 0; i < n; i++)
        counts[i] = trim_bucket(t, &b[i], positive, t->custom);
}

void hist_trim(struct hist *h, double limit, bool upper, struct arena *a)
{
    struct trim t = {.limit = limit, .upper = upper, .custom = hist_is_custom(h)};
    struct hist_bucket zero = {.lower = -h->zero_threshold, .upper = h->zero_threshold, .count = h->zero_count};
    fit_zero_bucket(h, &zero);
    trim_side(&t, h, true, a);
    trim_side(&t, h, false, a);
    if (h->zero_count > 0) h->zero_count = trim_bucket(&t, &zero, true, true);
    hist_compact(h, a);
    if (!t.changed) return;
    h->count = t.count;
    h->sum = t.sum;
}
