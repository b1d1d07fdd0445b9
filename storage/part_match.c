/*
 * part_match.c: answers of part_find, kept beside the frames they were read from.
 *
 * Dashboards and rules ask the same selectors again and again, and a part never changes: what was found
 * once is right for as long as the part is there. An answer is an entry of the frame cache, so it counts
 * against the cache's bytes, is evicted like a frame, and is forgotten with its part. Its "offset" is a
 * keyed hash with the top bit set, where no frame can be; the whole question stands in the entry, so
 * that two questions of one hash are told apart.
 *
 *   u32 bytes of the question   u32 matches, or UNKNOWN   question, padded to 8   matches
 *   question: i64 first day, i64 last day of the range within the part, then part_match_key
 *
 * A selector of many series has no answer here (UNKNOWN): finding them is little beside reading them.
 */
#include "storage/part_match.h"

#include "storage/base/alloc.h"
#include "storage/part_format.h"

#define MATCHES_MAX 2048u /* more are not remembered */
#define QUESTION_MAX 4096u
#define UNKNOWN UINT32_MAX
#define NOT_AN_OFFSET (UINT64_C(1) << 63)

struct header {
    uint32_t question_bytes, matches;
};

struct question {
    struct part *p;
    const struct matcher *m;
    size_t n;
    int64_t t_min, t_max;
    str text;
};

void part_match_key(const struct matcher *m, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        buf_u8(out, (uint8_t)m[i].op);
        buf_lenstr(out, m[i].name);
        buf_lenstr(out, m[i].value);
    }
}

static size_t matches_at(size_t question_bytes)
{
    return (sizeof(struct header) + question_bytes + 7) & ~(size_t)7;
}

/* ---- finding ------------------------------------------------------------------------------------------------ */

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

static err describe_all(struct part_cursor *c, const uint32_t *ids, uint32_t n, struct part_match *out)
{
    for (uint32_t i = 0; i < n; i++)
        TRY(describe(c, ids[i], &out[i]));
    return NULL;
}

/* fcache_load_fn */
static err load_matches(void *arg, uint64_t offset, uint8_t **data, size_t *n)
{
    (void)offset;
    struct question *q = arg;
    struct postings *found = NULL;
    uint8_t *entry = NULL;
    uint32_t ids[MATCHES_MAX];
    struct part_cursor *c = part_cursor_create(q->p);
    err e = NULL;
    TRY_OUT(part_find(c, q->m, q->n, q->t_min, q->t_max, &found));
    uint64_t count = postings_count(found);
    struct header h = {(uint32_t)q->text.n, count > MATCHES_MAX ? UNKNOWN : (uint32_t)count};
    size_t at = matches_at(q->text.n), listed = h.matches == UNKNOWN ? 0 : postings_list(found, ids, MATCHES_MAX);
    *n = at + listed * sizeof(struct part_match);
    entry = mem_zalloc(*n);
    memcpy(entry, &h, sizeof h);
    memcpy(entry + sizeof h, q->text.p, q->text.n);
    TRY_OUT(describe_all(c, ids, (uint32_t)listed, (struct part_match *)(void *)(entry + at)));
    *data = entry;
    entry = NULL;
out:
    mem_free(entry);
    postings_destroy(found);
    part_cursor_destroy(c);
    return e;
}

/* ---- asking ------------------------------------------------------------------------------------------------- */

/* The days of the range that the part has: part_find's answer depends on no more of it. */
static void put_days(const struct part *p, int64_t t_min, int64_t t_max, struct buf *out)
{
    const struct part_meta *m = &p->footer.meta;
    int64_t from = t_min > m->t_min ? t_min : m->t_min, to = t_max < m->t_max ? t_max : m->t_max;
    buf_u64(out, (uint64_t)part_day_of(from));
    buf_u64(out, (uint64_t)part_day_of(to));
}

static bool answers(const struct fcache_entry *e, str question)
{
    struct header h;
    memcpy(&h, e->data, sizeof h);
    return h.question_bytes == question.n && memcmp(e->data + sizeof h, question.p, question.n) == 0;
}

err part_match_find(struct part *p, const struct matcher *m, size_t n, str key, int64_t t_min, int64_t t_max,
                    struct part_matches *out, bool *known)
{
    *known = false;
    if (key.n > QUESTION_MAX) return NULL;
    uint8_t room[QUESTION_MAX + 16];
    struct buf text = {.data = room, .cap = sizeof room, .max = sizeof room};
    put_days(p, t_min, t_max, &text);
    buf_put(&text, key.p, key.n);
    struct question q = {p, m, n, t_min, t_max, buf_as_str(&text)};
    uint64_t name = hash64(&p->key, q.text.p, q.text.n) | NOT_AN_OFFSET;
    const struct fcache_entry *e;
    TRY(fcache_get(p->cache, p->footer.meta.id, name, load_matches, &q, &e));
    struct header h;
    memcpy(&h, e->data, sizeof h);
    *known = h.matches != UNKNOWN && answers(e, q.text);
    if (!*known) {
        fcache_unpin(p->cache, e);
        return NULL;
    }
    const void *matches = e->data + matches_at(q.text.n);
    *out = (struct part_matches){matches, h.matches, p, e};
    return NULL;
}

void part_match_done(struct part_matches *m)
{
    fcache_unpin(m->p->cache, m->pin);
}
