/*
 * part_match.c: part_find as a remembered answer: an array of struct part_match.
 *
 * A selector of many series has none: finding them is little beside reading them.
 */
#include "storage/part_match.h"

#define MATCHES_MAX 2048u /* more are not remembered */

struct query {
    struct part *p;
    const struct matcher *m;
    size_t n;
    int64_t t_min, t_max;
};

static err describe(struct part_cursor *c, uint32_t id, struct part_match *out)
{
    struct part_series s;
    TRY(part_series(c, id, &s));
    *out = (struct part_match){.id = id, .t_min = INT64_MAX, .t_max = INT64_MIN};
    for (uint32_t i = 0; i < s.n_blocks; i++) {
        if (s.blocks[i].t_min < out->t_min) out->t_min = s.blocks[i].t_min;
        if (s.blocks[i].t_max > out->t_max) out->t_max = s.blocks[i].t_max;
    }
    return part_series_id(c, &s, &out->identity);
}

static err describe_all(struct part_cursor *c, const uint32_t *ids, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        struct part_match m;
        TRY(describe(c, ids[i], &m));
        buf_put(out, &m, sizeof m);
    }
    return NULL;
}

/* part_answer_fn */
static err find_matches(void *arg, struct buf *out, bool *small)
{
    struct query *q = arg;
    struct postings *found = NULL;
    uint32_t ids[MATCHES_MAX];
    struct part_cursor *c = part_cursor_create(q->p);
    err e = NULL;
    TRY_OUT(part_find(c, q->m, q->n, q->t_min, q->t_max, &found));
    *small = postings_count(found) <= MATCHES_MAX;
    if (*small) e = describe_all(c, ids, postings_list(found, ids, MATCHES_MAX), out);
out:
    postings_destroy(found);
    part_cursor_destroy(c);
    return e;
}

err part_match_find(struct part *p, const struct matcher *m, size_t n, str text, int64_t t_min, int64_t t_max,
                    struct part_matches *out, bool *known)
{
    struct query q = {p, m, n, t_min, t_max};
    struct part_ask ask = {PART_ASKED_SERIES, text, t_min, t_max};
    TRY(part_answer(p, &ask, find_matches, &q, &out->answer, known));
    if (!*known) return NULL;
    out->v = (const void *)out->answer.bytes.p;
    out->n = out->answer.bytes.n / sizeof *out->v;
    return NULL;
}

void part_match_done(struct part_matches *m)
{
    part_answer_done(&m->answer);
}
