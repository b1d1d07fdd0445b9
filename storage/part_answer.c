/*
 * part_answer.c: answers about a part, kept beside the frames they were read from.
 *
 * Dashboards, rules and editors ask the same again and again, and a part never changes: what was found
 * once is right for as long as the part is there. An answer is an entry of the frame cache, so it counts
 * against the cache's bytes, is evicted like a frame, and is forgotten with its part. Its "offset" is a
 * keyed hash with the top bit set, where no frame can be; the whole question stands in the entry, so
 * that two questions of one hash are told apart.
 *
 *   u32 bytes of the question   u32 small (0: too large, no answer follows)   question, padded to 8   answer
 *   question: i64 first day, i64 last day of the range within the part, u8 kind, text
 */
#include "storage/part_answer.h"

#include "storage/base/alloc.h"
#include "storage/part_format.h"

#define QUESTION_MAX 4096u      /* bytes of text */
#define ANSWER_MAX (256u << 10) /* bytes; more are not remembered */
#define NOT_AN_OFFSET (UINT64_C(1) << 63)

struct header {
    uint32_t question_bytes, small;
};

struct search {
    part_answer_fn find;
    void *arg;
    str question;
};

static size_t answer_at(size_t question_bytes)
{
    return (sizeof(struct header) + question_bytes + 7) & ~(size_t)7;
}

/* fcache_load_fn */
static err search(void *arg, uint64_t offset, uint8_t **data, size_t *n)
{
    (void)offset;
    struct search *s = arg;
    struct buf answer = {.max = ANSWER_MAX};
    bool small = true;
    err e = s->find(s->arg, &answer, &small);
    if (e == NULL) {
        struct header h = {(uint32_t)s->question.n, small && !answer.failed};
        size_t at = answer_at(s->question.n);
        *n = at + (h.small ? answer.n : 0);
        *data = mem_zalloc(*n);
        memcpy(*data, &h, sizeof h);
        memcpy(*data + sizeof h, s->question.p, s->question.n);
        if (h.small && answer.n > 0) memcpy(*data + at, answer.data, answer.n);
    }
    buf_deinit(&answer);
    return e;
}

static void put_question(const struct part *p, const struct part_ask *ask, struct buf *out)
{
    const struct part_meta *m = &p->footer.meta;
    int64_t from = ask->t_min > m->t_min ? ask->t_min : m->t_min, to = ask->t_max < m->t_max ? ask->t_max : m->t_max;
    buf_u64(out, (uint64_t)part_day_of(from));
    buf_u64(out, (uint64_t)part_day_of(to));
    buf_u8(out, (uint8_t)ask->kind);
    buf_str(out, ask->text);
}

static bool answers(const struct fcache_entry *e, str question)
{
    struct header h;
    memcpy(&h, e->data, sizeof h);
    return h.small && h.question_bytes == question.n && memcmp(e->data + sizeof h, question.p, question.n) == 0;
}

err part_answer(struct part *p, const struct part_ask *ask, part_answer_fn find, void *arg, struct part_answer *out,
                bool *known)
{
    uint8_t room[QUESTION_MAX + 32];
    struct buf text = {.data = room, .cap = sizeof room, .max = sizeof room};
    *known = false;
    put_question(p, ask, &text);
    if (text.failed) return NULL;
    struct search s = {find, arg, buf_as_str(&text)};
    uint64_t name = hash64(&p->key, s.question.p, s.question.n) | NOT_AN_OFFSET;
    const struct fcache_entry *e;
    TRY(fcache_get(p->cache, p->footer.meta.id, name, search, &s, &e));
    *known = answers(e, s.question);
    if (!*known) {
        fcache_unpin(p->cache, e);
        return NULL;
    }
    size_t at = answer_at(s.question.n);
    *out = (struct part_answer){{(const char *)e->data + at, e->n - at}, p, e};
    return NULL;
}

void part_answer_done(struct part_answer *a)
{
    fcache_unpin(a->p->cache, a->pin);
}
