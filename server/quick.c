/*
 * quick.c: a table of the last durations of query shapes (quick.h).
 *
 * An entry is one atomic word: 40 bits of the shape's hash, 24 bits of microseconds. A shape is quick
 * when its last runs took less than QUICK_US; a slow run counts at once, quick ones bring the figure
 * down by and by. Contents of strings are left out of the shape, as panels differ by host and little
 * else, but for regular expressions, whose cost their text decides.
 */
#include "server/quick.h"

#include <math.h>
#include <stdatomic.h>

#include "server/args.h"
#include "storage/base/alloc.h"
#include "storage/base/hash.h"
#include "storage/base/num.h"

#define ENTRIES 4096
#define QUICK_US 300
#define SHAPE_MAX 1024 /* bytes of a query's text that is remembered */
#define US_BITS 24
#define US_MAX ((UINT64_C(1) << US_BITS) - 1)

struct quick {
    _Atomic uint64_t entries[ENTRIES];
};

struct quick *quick_create(void)
{
    return mem_zalloc(sizeof(struct quick));
}

void quick_destroy(struct quick *q)
{
    mem_free(q);
}

/* The text without what is between quotes, unless a regular expression. Returns the length; out: as long as text. */
static size_t put_shape(str text, char *out)
{
    size_t n = 0;
    char quote = 0;
    bool kept = false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (quote == 0 && (c == '"' || c == '\'' || c == '`')) {
            quote = c;
            kept = i > 0 && text.p[i - 1] == '~';
        } else if (quote != 0 && c == '\\' && quote != '`' && i + 1 < text.n) {
            i++; /* whatever is escaped does not end the string */
            if (kept) out[n++] = text.p[i];
            continue;
        } else if (c == quote) {
            quote = 0;
        } else if (quote != 0 && !kept) {
            continue;
        }
        out[n++] = c;
    }
    return n;
}

static double number(const struct exchange *x, const char *name)
{
    double v;
    return num_parse_double(args_text(x, name), &v) ? v : 0;
}

/* Ranges of about the same length are one: a factor of the square root of two. */
static int8_t range_scale(const struct exchange *x)
{
    double range = number(x, "end") - number(x, "start");
    return range > 0 ? (int8_t)(2 * log2(range)) : 0;
}

uint64_t quick_shape(const struct exchange *x)
{
    char shape[SHAPE_MAX + 64];
    str text = args_text(x, "query"), step = args_text(x, "step");
    if (text.n == 0 || text.n > SHAPE_MAX || step.n > 32) return 0;
    size_t n = put_shape(text, shape);
    memcpy(shape + n, step.p != NULL ? step.p : "", step.n);
    n += step.n;
    shape[n++] = (char)range_scale(x);
    uint64_t hash = checksum64(shape, n);
    return hash != 0 ? hash : 1;
}

uint64_t quick_shape_meta(const struct exchange *x)
{
    char shape[SHAPE_MAX + 64];
    struct buf text = {.data = (uint8_t *)shape, .cap = sizeof shape, .max = sizeof shape};
    buf_str(&text, x->path);
    for (uint32_t i = 0; i < x->params.n; i++) {
        const struct label *p = &x->params.v[i];
        if (str_eq(p->name, STR("start")) || str_eq(p->name, STR("end"))) continue;
        buf_lenstr(&text, p->name);
        buf_lenstr(&text, p->value);
    }
    buf_u8(&text, (uint8_t)range_scale(x));
    return text.failed ? 0 : checksum64(text.data, text.n) | 1;
}

static _Atomic uint64_t *entry_of(const struct quick *q, uint64_t shape)
{
    return (_Atomic uint64_t *)&q->entries[shape % ENTRIES];
}

/* Microseconds remembered for the shape; US_MAX if it is another's entry. */
static uint64_t remembered(const struct quick *q, uint64_t shape)
{
    uint64_t entry = atomic_load_explicit(entry_of(q, shape), memory_order_relaxed);
    return (entry ^ shape) >> US_BITS == 0 ? entry & US_MAX : US_MAX;
}

bool quick_expected(const struct quick *q, uint64_t shape)
{
    return q != NULL && shape != 0 && remembered(q, shape) < QUICK_US;
}

void quick_note(struct quick *q, uint64_t shape, uint64_t ns)
{
    if (q == NULL || shape == 0) return;
    uint64_t us = ns / 1000, before = remembered(q, shape);
    if (before != US_MAX && us < before) us = (before + us) / 2;
    if (us >= US_MAX) us = US_MAX - 1;
    atomic_store_explicit(entry_of(q, shape), (shape & ~US_MAX) | us, memory_order_relaxed);
}
