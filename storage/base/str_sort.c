/*
 * str_sort.c: multikey quicksort: three parts by one byte, and of the middle one that byte is not looked at again.
 *
 * J. Bentley, R. Sedgewick: "Fast Algorithms for Sorting and Searching Strings" (SODA 1997). Recursion is into the two
 * smaller parts only, so that no input makes it deeper than log2(n).
 */
#include "storage/base/str_sort.h"

#define FEW 12

struct stretch {
    str *v;
    size_t n, depth; /* all share their first `depth` bytes */
};

/* -1: the string ends here, which is before all bytes. */
static inline int byte_at(const str *s, size_t depth)
{
    return depth < s->n ? (uint8_t)s->p[depth] : -1;
}

static inline void swap(str *a, str *b)
{
    str t = *a;
    *a = *b;
    *b = t;
}

static void sort_few(const struct stretch *s)
{
    for (size_t i = 1; i < s->n; i++) {
        str new = s->v[i], tail = {new.p + s->depth, new.n - s->depth};
        size_t at = i;
        for (; at > 0; at--) {
            str before = {s->v[at - 1].p + s->depth, s->v[at - 1].n - s->depth};
            if (str_cmp(before, tail) <= 0) break;
            s->v[at] = s->v[at - 1];
        }
        s->v[at] = new;
    }
}

static int pivot_of(const struct stretch *s)
{
    int a = byte_at(&s->v[0], s->depth), b = byte_at(&s->v[s->n / 2], s->depth);
    int c = byte_at(&s->v[s->n - 1], s->depth);
    if (a > b) return b > c ? b : (a > c ? c : a);
    return a > c ? a : (b > c ? c : b);
}

/* Less, equal, greater; the equal ones need no more if that is the end of them. */
static void split(const struct stretch *s, struct stretch out[3])
{
    int pivot = pivot_of(s);
    size_t less = 0, greater = s->n;
    for (size_t i = 0; i < greater;) {
        int c = byte_at(&s->v[i], s->depth);
        if (c < pivot)
            swap(&s->v[less++], &s->v[i++]);
        else if (c > pivot)
            swap(&s->v[i], &s->v[--greater]);
        else
            i++;
    }
    out[0] = (struct stretch){s->v, less, s->depth};
    out[1] = (struct stretch){s->v + less, pivot < 0 ? 0 : greater - less, s->depth + 1};
    out[2] = (struct stretch){s->v + greater, s->n - greater, s->depth};
}

static void sort(struct stretch s)
{
    while (s.n > FEW) {
        struct stretch part[3];
        split(&s, part);
        size_t largest = part[0].n > part[1].n ? 0 : 1;
        if (part[2].n > part[largest].n) largest = 2;
        for (size_t i = 0; i < 3; i++)
            if (i != largest && part[i].n > 1) sort(part[i]);
        s = part[largest];
    }
    sort_few(&s);
}

static bool is_sorted(const str *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (str_cmp(v[i - 1], v[i]) > 0) return false;
    return true;
}

void str_sort(str *v, size_t n)
{
    if (!is_sorted(v, n)) sort((struct stretch){v, n, 0});
}

size_t str_sort_unique(str *v, size_t n)
{
    size_t kept = 0;
    str_sort(v, n);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || !str_eq(v[i], v[kept - 1])) v[kept++] = v[i];
    return kept;
}
