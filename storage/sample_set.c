/* sample_set.c: see sample_set.h. Settling is rare (overlaps, late samples), so it sorts an index by a stable merge. */
#include "storage/sample_set.h"

void sample_set_deinit(struct sample_set *s)
{
    mem_free(s->t);
    mem_free(s->v);
    mem_free(s->hist);
    mem_free(s->start);
    *s = (struct sample_set){0};
}

void sample_set_clear(struct sample_set *s)
{
    mem_free(s->hist);
    mem_free(s->start);
    s->hist = NULL;
    s->start = NULL;
    s->n = 0;
    s->unsorted = false;
}

void sample_set_reserve(struct sample_set *s, size_t n)
{
    if (s->t != NULL && s->n + n <= s->cap) return;
    size_t cap = s->cap * 2 > s->n + n ? s->cap * 2 : s->n + n + 64;
    s->t = mem_realloc(s->t, (cap + SAMPLE_SET_PAD) * sizeof *s->t);
    s->v = mem_realloc(s->v, (cap + SAMPLE_SET_PAD) * sizeof *s->v);
    if (s->hist != NULL) s->hist = mem_realloc(s->hist, (cap + SAMPLE_SET_PAD) * sizeof *s->hist);
    if (s->start != NULL) s->start = mem_realloc(s->start, (cap + SAMPLE_SET_PAD) * sizeof *s->start);
    s->cap = cap;
}

void sample_set_push_hist(struct sample_set *s, int64_t t, double sum, str blob)
{
    sample_set_push(s, t, sum);
    if (s->hist == NULL) s->hist = mem_zalloc((s->cap + SAMPLE_SET_PAD) * sizeof *s->hist);
    s->hist[s->n - 1] = blob;
}

void sample_set_need_starts(struct sample_set *s)
{
    if (s->start == NULL) s->start = mem_zalloc((s->cap + SAMPLE_SET_PAD) * sizeof *s->start);
}

void sample_set_mark_start(struct sample_set *s, int64_t start)
{
    if (start == 0) return;
    sample_set_need_starts(s);
    s->start[s->n - 1] = start;
}

void sample_set_accept(struct sample_set *s, size_t k, bool has_start, int64_t t_min, int64_t t_max)
{
    int64_t *t = s->t + s->n;
    double *v = s->v + s->n;
    while (k > 0 && t[k - 1] > t_max)
        k--;
    size_t skip = 0;
    while (skip < k && t[skip] < t_min)
        skip++;
    k -= skip;
    if (k == 0) return;
    if (skip > 0) {
        memmove(t, t + skip, k * sizeof *t);
        memmove(v, v + skip, k * sizeof *v);
        if (has_start) memmove(s->start + s->n, s->start + s->n + skip, k * sizeof *s->start);
    }
    if (!has_start && s->start != NULL) memset(s->start + s->n, 0, k * sizeof *s->start);
    if (s->hist != NULL) memset(s->hist + s->n, 0, k * sizeof *s->hist);
    if (s->n > 0 && t[0] <= s->t[s->n - 1]) s->unsorted = true;
    s->n += k;
}

/* Bottom-up stable merge sort of indexes by time. Returns the array that holds the result (a or b). */
static uint32_t *sort_index(const int64_t *t, size_t n, uint32_t *a, uint32_t *b)
{
    for (size_t i = 0; i < n; i++)
        a[i] = (uint32_t)i;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            size_t mid = at + width < n ? at + width : n, end = at + 2 * width < n ? at + 2 * width : n;
            for (size_t i = at, j = mid, k = at; k < end; k++)
                b[k] = i < mid && (j == end || t[a[i]] <= t[a[j]]) ? a[i++] : a[j++];
        }
        uint32_t *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

void sample_set_settle(struct sample_set *s)
{
    if (!s->unsorted) return;
    uint32_t *scratch = mem_alloc(2 * s->n * sizeof *scratch);
    const uint32_t *order = sort_index(s->t, s->n, scratch, scratch + s->n);
    struct sample_set sorted = {0};
    sample_set_reserve(&sorted, s->n);
    for (size_t i = 0; i < s->n; i++) {
        uint32_t from = order[i];
        if (i + 1 < s->n && s->t[order[i + 1]] == s->t[from]) continue; /* a later write follows */
        if (s->hist != NULL && s->hist[from].n > 0)
            sample_set_push_hist(&sorted, s->t[from], s->v[from], s->hist[from]);
        else
            sample_set_push(&sorted, s->t[from], s->v[from]);
        if (s->start != NULL) sample_set_mark_start(&sorted, s->start[from]);
    }
    mem_free(scratch);
    sample_set_deinit(s);
    *s = sorted;
}

void sample_set_cut(struct sample_set *s, size_t from, int64_t t_min, int64_t t_max)
{
    size_t kept = from;
    for (size_t i = from; i < s->n; i++) {
        if (s->t[i] >= t_min && s->t[i] <= t_max) continue;
        s->t[kept] = s->t[i];
        s->v[kept] = s->v[i];
        if (s->hist != NULL) s->hist[kept] = s->hist[i];
        if (s->start != NULL) s->start[kept] = s->start[i];
        kept++;
    }
    s->n = kept;
}
