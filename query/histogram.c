/*
 * histogram.c: arithmetic of native histograms.
 *
 * A histogram's side (positive or negative) is worked on as a plain list of (index, count) pairs in
 * order and laid out in spans again at the end; so there is one merge for all cases:
 *
 *   spans  [offset 2, length 2] [offset 1, length 1]   counts 5 7 9
 *   list   (2, 5) (3, 7) (5, 9)
 *
 * Before two histograms meet, they are brought to the lower schema, the wider zero bucket, or the
 * common custom bounds. Memory comes from the caller's arena. Pure otherwise; any thread.
 * Source: Prometheus native histogram specification.
 */
#include "query/histogram.h"

#include <math.h>

#include "query/rollup.h"

/* One side as a list. */
struct side {
    int32_t *index;
    double *count;
    uint32_t n;
};

static struct side side_new(struct arena *a, uint32_t cap)
{
    return (struct side){arena_alloc(a, (cap + 1) * sizeof(int32_t)), arena_alloc(a, (cap + 1) * sizeof(double)), 0};
}

static void side_push(struct side *s, int32_t index, double count)
{
    s->index[s->n] = index;
    s->count[s->n++] = count;
}

static struct side side_of(const struct hist *h, bool positive, struct arena *a)
{
    const struct hist_span *spans = positive ? h->positive_spans : h->negative_spans;
    uint32_t n_spans = positive ? h->n_positive_spans : h->n_negative_spans;
    const double *counts = positive ? h->positive : h->negative;
    uint32_t n = positive ? h->n_positive : h->n_negative, k = 0;
    struct side s = side_new(a, n);
    int32_t index = 0;
    for (uint32_t i = 0; i < n_spans; i++) {
        index += spans[i].offset;
        for (uint32_t j = 0; j < spans[i].length && k < n; j++)
            side_push(&s, index++, counts[k++]);
    }
    return s;
}

static void side_store(struct hist *h, bool positive, const struct side *s, struct arena *a)
{
    struct hist_span *spans = arena_alloc(a, (s->n + 1) * sizeof *spans);
    uint32_t n_spans = 0;
    int32_t next = 0; /* index behind the last span */
    for (uint32_t i = 0; i < s->n; i++) {
        if (n_spans == 0 || s->index[i] != next) spans[n_spans++] = (struct hist_span){s->index[i] - next, 0};
        spans[n_spans - 1].length++;
        next = s->index[i] + 1;
    }
    if (positive) {
        h->positive_spans = spans;
        h->n_positive_spans = n_spans;
        h->positive = s->count;
        h->n_positive = s->n;
    } else {
        h->negative_spans = spans;
        h->n_negative_spans = n_spans;
        h->negative = s->count;
        h->n_negative = s->n;
    }
}

struct hist *hist_copy(struct arena *a, const struct hist *h)
{
    struct hist *c = arena_dup(a, h, sizeof *h);
    c->positive_spans = arena_dup(a, h->positive_spans, h->n_positive_spans * sizeof *h->positive_spans);
    c->negative_spans = arena_dup(a, h->negative_spans, h->n_negative_spans * sizeof *h->negative_spans);
    c->positive = arena_dup(a, h->positive, h->n_positive * sizeof *h->positive);
    c->negative = arena_dup(a, h->negative, h->n_negative * sizeof *h->negative);
    c->custom = arena_dup(a, h->custom, h->n_custom * sizeof *h->custom);
    return c;
}

/* ---- one histogram ------------------------------------------------------------------------------------- */

void hist_mul(struct hist *h, double f)
{
    h->zero_count *= f;
    h->count *= f;
    h->sum *= f;
    for (uint32_t i = 0; i < h->n_positive; i++)
        h->positive[i] *= f;
    for (uint32_t i = 0; i < h->n_negative; i++)
        h->negative[i] *= f;
    if (f < 0) h->reset_hint = HIST_RESET_GAUGE;
}

void hist_div(struct hist *h, double f)
{
    h->zero_count /= f;
    h->count /= f;
    h->sum /= f;
    if (f == 0) {
        h->n_positive = h->n_negative = h->n_positive_spans = h->n_negative_spans = 0;
        return;
    }
    for (uint32_t i = 0; i < h->n_positive; i++)
        h->positive[i] /= f;
    for (uint32_t i = 0; i < h->n_negative; i++)
        h->negative[i] /= f;
    if (f < 0) h->reset_hint = HIST_RESET_GAUGE;
}

static void compact_side(struct hist *h, bool positive, struct arena *a)
{
    struct side all = side_of(h, positive, a), kept = side_new(a, all.n);
    for (uint32_t i = 0; i < all.n; i++)
        if (all.count[i] != 0) side_push(&kept, all.index[i], all.count[i]);
    side_store(h, positive, &kept, a);
}

void hist_compact(struct hist *h, struct arena *a)
{
    compact_side(h, true, a);
    compact_side(h, false, a);
}

/* Index of the wider bucket that takes the bucket in; each step down in schema joins two. */
static int32_t coarser_index(int32_t index, int32_t steps)
{
    int64_t i = (int64_t)index - 1;
    return (int32_t)((i >> (steps < 31 ? steps : 31)) + 1);
}

static void coarsen_side(struct hist *h, bool positive, int32_t steps, struct arena *a)
{
    struct side fine = side_of(h, positive, a), out = side_new(a, fine.n);
    for (uint32_t i = 0; i < fine.n; i++) {
        int32_t index = coarser_index(fine.index[i], steps);
        if (out.n > 0 && out.index[out.n - 1] == index)
            out.count[out.n - 1] += fine.count[i];
        else
            side_push(&out, index, fine.count[i]);
    }
    side_store(h, positive, &out, a);
}

struct hist *hist_to_schema(const struct hist *h, int32_t schema, struct arena *a)
{
    struct hist *c = hist_copy(a, h);
    if (schema >= h->schema || hist_is_custom(h)) return c;
    coarsen_side(c, true, h->schema - schema, a);
    coarsen_side(c, false, h->schema - schema, a);
    c->schema = schema;
    c->reset_hint = HIST_RESET_UNKNOWN;
    return c;
}

bool hist_has_overflow(const struct hist *h)
{
    if (isinf(h->zero_count) || isinf(h->count) || isinf(h->sum)) return true;
    for (uint32_t i = 0; i < h->n_positive; i++)
        if (isinf(h->positive[i])) return true;
    for (uint32_t i = 0; i < h->n_negative; i++)
        if (isinf(h->negative[i])) return true;
    return false;
}

/* ---- zero buckets --------------------------------------------------------------------------------------- */

/* Adds to *count what of one side lies below *threshold, widening it over a populated bucket that it would cut. */
static bool count_inside(const struct hist *h, bool positive, double *threshold, double *count, struct arena *a)
{
    struct side s = side_of(h, positive, a);
    for (uint32_t i = 0; i < s.n; i++) {
        double lower = hist_bound(s.index[i] - 1, h->schema, NULL, 0);
        double upper = hist_bound(s.index[i], h->schema, NULL, 0);
        if (lower >= *threshold) break;
        *count += s.count[i];
        if (upper <= *threshold) continue;
        if (s.count[i] == 0) break;
        *threshold = upper;
        return true;
    }
    return false;
}

/* The zero count if the zero bucket reached to *threshold, which grows so that no populated bucket is cut. */
static double zero_count_for(const struct hist *h, double *threshold, struct arena *a)
{
    if (*threshold == h->zero_threshold) return h->zero_count;
    double count;
    do {
        count = h->zero_count;
        count_inside(h, true, threshold, &count, a);
    } while (count_inside(h, false, threshold, &count, a));
    return count;
}

/* Removes the buckets that the zero bucket has swallowed. */
static void drop_inside(struct hist *h, bool positive, struct arena *a)
{
    struct side all = side_of(h, positive, a), kept = side_new(a, all.n);
    for (uint32_t i = 0; i < all.n; i++)
        if (hist_bound(all.index[i] - 1, h->schema, NULL, 0) >= h->zero_threshold && all.count[i] != 0)
            side_push(&kept, all.index[i], all.count[i]);
    side_store(h, positive, &kept, a);
}

static void widen_zero(struct hist *h, double threshold, struct arena *a)
{
    h->zero_count = zero_count_for(h, &threshold, a);
    h->zero_threshold = threshold;
    drop_inside(h, true, a);
    drop_inside(h, false, a);
}

/* Brings both to one zero bucket; each widening may force another on the other side. */
static void reconcile_zero(struct hist *h, struct hist *other, struct arena *a)
{
    while (h->zero_threshold != other->zero_threshold) {
        if (h->zero_threshold > other->zero_threshold)
            widen_zero(other, h->zero_threshold, a);
        else
            widen_zero(h, other->zero_threshold, a);
    }
}

/* ---- custom bounds ---------------------------------------------------------------------------------------- */

static bool same_bounds(const struct hist *x, const struct hist *y)
{
    if (x->n_custom != y->n_custom) return false;
    for (uint32_t i = 0; i < x->n_custom; i++)
        if (x->custom[i] != y->custom[i]) return false;
    return true;
}

static uint32_t common_bounds(const struct hist *x, const struct hist *y, double *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0, k = 0; i < x->n_custom && k < y->n_custom;) {
        if (x->custom[i] == y->custom[k]) {
            out[n++] = x->custom[i++];
            k++;
        } else if (x->custom[i] < y->custom[k]) {
            i++;
        } else {
            k++;
        }
    }
    return n;
}

/* Moves each bucket into the first one whose upper bound is not below its own. */
static void rebind(struct hist *h, double *bounds, uint32_t n_bounds, struct arena *a)
{
    struct side old = side_of(h, true, a), out = side_new(a, old.n);
    int32_t to = 0;
    for (uint32_t i = 0; i < old.n; i++) {
        double upper = hist_bound(old.index[i], h->schema, h->custom, h->n_custom);
        while ((uint32_t)to < n_bounds && bounds[to] < upper)
            to++;
        if (out.n > 0 && out.index[out.n - 1] == to)
            out.count[out.n - 1] += old.count[i];
        else
            side_push(&out, to, old.count[i]);
    }
    side_store(h, true, &out, a);
    h->custom = bounds;
    h->n_custom = n_bounds;
}

/* ---- two histograms ------------------------------------------------------------------------------------------ */

/* The hint of a sum; true if "reset" and "no reset" met. */
static bool merge_hints(struct hist *h, const struct hist *other)
{
    uint8_t x = h->reset_hint, y = other->reset_hint;
    if (x == y || x == HIST_RESET_GAUGE) return false;
    if (y == HIST_RESET_GAUGE) {
        h->reset_hint = HIST_RESET_GAUGE;
        return false;
    }
    h->reset_hint = HIST_RESET_UNKNOWN;
    return x != HIST_RESET_UNKNOWN && y != HIST_RESET_UNKNOWN;
}

/* Brings h (in place) and a copy of other to one layout of zero bucket, schema and bounds. */
static struct hist *align(struct hist *h, const struct hist *other, struct arena *a, bool *reconciled)
{
    struct hist *o = hist_copy(a, other);
    *reconciled = false;
    if (hist_is_custom(h)) {
        if (same_bounds(h, o)) return o;
        *reconciled = true;
        double *bounds = arena_alloc(a, (h->n_custom + 1) * sizeof *bounds);
        uint32_t n = common_bounds(h, o, bounds);
        rebind(h, bounds, n, a);
        rebind(o, bounds, n, a);
        return o;
    }
    reconcile_zero(h, o, a);
    int32_t schema = h->schema < o->schema ? h->schema : o->schema;
    for (int i = 0; i < 2; i++) {
        struct hist *x = i ? o : h;
        if (x->schema == schema) continue;
        coarsen_side(x, true, x->schema - schema, a);
        coarsen_side(x, false, x->schema - schema, a);
        x->schema = schema;
    }
    return o;
}

/* h's side becomes h + sign * o; with comp, compensations go along in a list of the same layout. */
static void merge_side(struct hist *h, const struct hist *o, struct hist *comp, double sign, bool positive,
                       struct arena *a)
{
    struct side x = side_of(h, positive, a), y = side_of(o, positive, a), out = side_new(a, x.n + y.n);
    struct side c = {0}, c_out = side_new(a, comp ? x.n + y.n : 0);
    if (comp) c = side_of(comp, positive, a);
    uint32_t ic = 0;
    for (uint32_t i = 0, k = 0; i < x.n || k < y.n;) {
        bool has_x = i < x.n && (k == y.n || x.index[i] <= y.index[k]);
        bool has_y = k < y.n && (i == x.n || y.index[k] <= x.index[i]);
        int32_t index = has_x ? x.index[i] : y.index[k];
        struct kahan sum = {has_x ? x.count[i] : 0, 0};
        while (ic < c.n && c.index[ic] < index)
            ic++;
        if (ic < c.n && c.index[ic] == index) sum.c = c.count[ic];
        if (has_y && comp)
            kahan_add(&sum, sign * y.count[k]);
        else if (has_y)
            sum.sum += sign * y.count[k];
        side_push(&out, index, sum.sum);
        if (comp) side_push(&c_out, index, sum.c);
        i += has_x;
        k += has_y;
    }
    side_store(h, positive, &out, a);
    if (comp) side_store(comp, positive, &c_out, a);
}

static void merge_field(double *field, double *comp, double x)
{
    if (!comp) {
        *field += x;
        return;
    }
    struct kahan k = {*field, *comp};
    kahan_add(&k, x);
    *field = k.sum;
    *comp = k.c;
}

/* Steps through the buckets of a side. */
struct steps {
    const struct hist_span *spans;
    uint32_t n_spans, span, in_span;
    int32_t index; /* of the bucket just stepped on */
    uint32_t k;    /* its place among the counts, from 1 */
};

static bool step_on(struct steps *s)
{
    s->index++;
    while (s->span < s->n_spans && s->in_span == s->spans[s->span].length) {
        s->span++;
        s->in_span = 0;
        if (s->span < s->n_spans) s->index += s->spans[s->span].offset;
    }
    if (s->span == s->n_spans) return false;
    s->in_span++;
    s->k++;
    return true;
}

static struct steps steps_of(const struct hist *h, bool positive)
{
    struct steps s = {.spans = positive ? h->positive_spans : h->negative_spans,
                      .n_spans = positive ? h->n_positive_spans : h->n_negative_spans,
                      .index = -1};
    if (s.n_spans) s.index += s.spans[0].offset;
    return s;
}

/* Adds o's side to h's in place if h has all of its buckets; with `dry`, only tells if so. */
static bool add_within(struct hist *h, const struct hist *o, struct hist *comp, double sign, bool positive, bool dry)
{
    struct steps x = steps_of(h, positive), y = steps_of(o, positive);
    double *counts = positive ? h->positive : h->negative;
    double *comps = comp ? (positive ? comp->positive : comp->negative) : NULL;
    const double *added = positive ? o->positive : o->negative;
    if (comp && (positive ? comp->n_positive != h->n_positive : comp->n_negative != h->n_negative)) return false;
    bool more = step_on(&x);
    while (step_on(&y)) {
        while (more && x.index < y.index)
            more = step_on(&x);
        if (!more || x.index != y.index) return false;
        if (dry) continue;
        struct kahan sum = {counts[x.k - 1], comp ? comps[x.k - 1] : 0};
        if (comp)
            kahan_add(&sum, sign * added[y.k - 1]);
        else
            sum.sum += sign * added[y.k - 1];
        counts[x.k - 1] = sum.sum;
        if (comp) comps[x.k - 1] = sum.c;
    }
    return true;
}

/* True if o can be added to h without any change of h's layout: the common case in a long sum. */
static bool fits_within(struct hist *h, const struct hist *o, struct hist *comp)
{
    if (h->schema != o->schema || h->zero_threshold != o->zero_threshold) return false;
    if (comp && (comp->schema != h->schema || comp->zero_threshold != h->zero_threshold)) return false;
    if (hist_is_custom(h) && (!same_bounds(h, o) || (comp && !same_bounds(h, comp)))) return false;
    return add_within(h, o, comp, 1, true, true) && add_within(h, o, comp, 1, false, true);
}

static struct hist_outcome combine(struct hist *h, const struct hist *other, struct hist *comp, double sign,
                                   struct arena *a)
{
    struct hist_outcome outcome = {.incompatible = hist_is_custom(h) != hist_is_custom(other)};
    if (outcome.incompatible) return outcome;
    outcome.reset_collision = merge_hints(h, other);
    bool fits = fits_within(h, other, comp);
    const struct hist *o = fits ? other : align(h, other, a, &outcome.reconciled);
    if (comp && !fits) {
        bool ignored;
        align(comp, h, a, &ignored); /* compensations follow the layout of what they belong to */
    }
    merge_field(&h->count, comp ? &comp->count : NULL, sign * o->count);
    merge_field(&h->sum, comp ? &comp->sum : NULL, sign * o->sum);
    merge_field(&h->zero_count, comp ? &comp->zero_count : NULL, sign * o->zero_count);
    if (fits) {
        add_within(h, o, comp, sign, true, false);
        add_within(h, o, comp, sign, false, false);
        return outcome;
    }
    merge_side(h, o, comp, sign, true, a);
    merge_side(h, o, comp, sign, false, a);
    return outcome;
}

struct hist_outcome hist_add(struct hist *h, const struct hist *other, struct arena *a)
{
    return combine(h, other, NULL, 1, a);
}

struct hist_outcome hist_sub(struct hist *h, const struct hist *other, struct arena *a)
{
    return combine(h, other, NULL, -1, a);
}

struct hist_outcome hist_kahan_add(struct hist *h, const struct hist *other, struct hist **comp, struct arena *a)
{
    if (!*comp) {
        *comp = hist_copy(a, h);
        hist_mul(*comp, 0);
        (*comp)->sum = (*comp)->count = (*comp)->zero_count = 0;
        (*comp)->reset_hint = HIST_RESET_UNKNOWN;
    }
    return combine(h, other, *comp, 1, a);
}

/* ---- running sums --------------------------------------------------------------------------------------------- */

/* Sums of histograms with values up to this cannot overflow for any number of terms that fits in memory. */
#define HIST_SANE_MAX 1e290

static bool is_sane(const struct hist *h)
{
    bool sane = fabs(h->count) < HIST_SANE_MAX && fabs(h->sum) < HIST_SANE_MAX && fabs(h->zero_count) < HIST_SANE_MAX;
    for (uint32_t i = 0; i < h->n_positive && sane; i++)
        sane = fabs(h->positive[i]) < HIST_SANE_MAX;
    for (uint32_t i = 0; i < h->n_negative && sane; i++)
        sane = fabs(h->negative[i]) < HIST_SANE_MAX;
    return sane;
}

static void sum_term(struct hist_sum *s, const struct hist *h, struct arena *a)
{
    struct hist_outcome o = hist_kahan_add(s->sum, h, &s->comp, a);
    s->reconciled = s->reconciled || o.reconciled;
    s->incompatible = s->incompatible || o.incompatible;
}

/* Tries a term on a copy; false, and nothing changed, if the sum overflows. */
static bool try_term(struct hist_sum *s, const struct hist *h, struct arena *a)
{
    struct hist_sum tried = *s;
    tried.sum = hist_copy(a, s->sum);
    tried.comp = s->comp ? hist_copy(a, s->comp) : NULL;
    sum_term(&tried, h, a);
    if (!tried.incompatible && hist_has_overflow(tried.sum)) return false;
    *s = tried;
    return true;
}

static void mean_term(struct hist_sum *s, const struct hist *h, struct arena *a)
{
    if (!s->as_mean) {
        s->as_mean = true;
        hist_div(s->sum, s->n - 1);
        if (s->comp) hist_div(s->comp, s->n - 1);
    }
    double q = (s->n - 1) / s->n;
    hist_mul(s->sum, q);
    if (s->comp) hist_mul(s->comp, q);
    struct hist *part = hist_copy(a, h);
    hist_div(part, s->n);
    sum_term(s, part, a);
}

void hist_sum_add(struct hist_sum *s, const struct hist *h, struct arena *a)
{
    if (s->incompatible) return;
    s->reset = s->reset || h->reset_hint == HIST_RESET_YES;
    s->no_reset = s->no_reset || h->reset_hint == HIST_RESET_NO;
    s->n++;
    if (!s->sum)
        s->sum = hist_copy(a, h);
    else if (!s->mean || (!s->as_mean && is_sane(s->sum) && is_sane(h)))
        sum_term(s, h, a);
    else if (s->as_mean || !try_term(s, h, a))
        mean_term(s, h, a);
}

struct hist *hist_sum_take(struct hist_sum *s, struct arena *a)
{
    if (s->mean && !s->as_mean) {
        hist_div(s->sum, s->n);
        if (s->comp) hist_div(s->comp, s->n);
    }
    if (s->comp) hist_add(s->sum, s->comp, a);
    return s->sum;
}

struct hist *hist_between(const struct hist *x, const struct hist *y, double fraction, bool counter, struct arena *a)
{
    struct hist *r = hist_copy(a, y);
    if (hist_is_custom(x) != hist_is_custom(y)) return NULL;
    if (counter && hist_detect_reset(y, x, a)) {
        hist_mul(r, fraction);
        return r;
    }
    hist_sub(r, x, a);
    hist_mul(r, fraction);
    hist_add(r, x, a);
    return r;
}

/* ---- comparison ------------------------------------------------------------------------------------------------ */

static bool same_side(const struct hist *x, const struct hist *y, bool positive, struct arena *a)
{
    struct side p = side_of(x, positive, a), q = side_of(y, positive, a);
    if (p.n != q.n) return false;
    for (uint32_t i = 0; i < p.n; i++)
        if (p.index[i] != q.index[i] || f64_bits(p.count[i]) != f64_bits(q.count[i])) return false;
    return true;
}

bool hist_equal(const struct hist *x, const struct hist *y)
{
    if (x->schema != y->schema || f64_bits(x->count) != f64_bits(y->count) || f64_bits(x->sum) != f64_bits(y->sum))
        return false;
    if (hist_is_custom(x) && !same_bounds(x, y)) return false;
    if (x->zero_threshold != y->zero_threshold || f64_bits(x->zero_count) != f64_bits(y->zero_count)) return false;
    struct arena scratch = {0};
    bool same = same_side(x, y, true, &scratch) && same_side(x, y, false, &scratch);
    arena_deinit(&scratch);
    return same;
}

/* True if a populated bucket of prev is missing in h or has shrunk. */
static bool side_shrank(const struct hist *h, const struct hist *prev, bool positive, struct arena *a)
{
    struct side x = side_of(h, positive, a), p = side_of(prev, positive, a);
    uint32_t i = 0;
    for (uint32_t k = 0; k < p.n; k++) {
        while (i < x.n && x.index[i] < p.index[k])
            i++;
        double now = i < x.n && x.index[i] == p.index[k] ? x.count[i] : 0;
        if (now < p.count[k]) return true;
    }
    return false;
}

bool hist_detect_reset(const struct hist *h, const struct hist *prev, struct arena *a)
{
    if (h->reset_hint == HIST_RESET_YES) return true;
    if (h->reset_hint == HIST_RESET_NO) return false;
    if (h->count < prev->count) return true;
    if (hist_is_custom(h)) {
        if (!hist_is_custom(prev)) return true;
        bool reconciled;
        struct hist *x = hist_copy(a, h), *p = align(x, prev, a, &reconciled);
        return side_shrank(x, p, true, a);
    }
    if (hist_is_custom(prev) || h->schema > prev->schema || h->zero_threshold < prev->zero_threshold) return true;
    double threshold = h->zero_threshold;
    double zero_before = zero_count_for(prev, &threshold, a);
    if (threshold != h->zero_threshold || h->zero_count < zero_before) return true;
    struct hist *p = hist_copy(a, prev);
    p->zero_threshold = threshold;
    drop_inside(p, true, a);
    drop_inside(p, false, a);
    if (p->schema > h->schema) {
        coarsen_side(p, true, p->schema - h->schema, a);
        coarsen_side(p, false, p->schema - h->schema, a);
    }
    return side_shrank(h, p, true, a) || side_shrank(h, p, false, a);
}
