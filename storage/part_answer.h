/*
 * part_answer.h: what was found out about a part, remembered in the frame cache.
 */
#ifndef VARVE_STORAGE_PART_ANSWER_H
#define VARVE_STORAGE_PART_ANSWER_H

#include "storage/part.h"

enum part_question { PART_ASKED_SERIES, PART_ASKED_NAMES, PART_ASKED_VALUES };

/* What is asked: what kind of question, its text, and the days of [t_min, t_max] that the part has. The answer must
 * depend on nothing else. */
struct part_ask {
    enum part_question kind;
    str text;
    int64_t t_min, t_max;
};

/* Appends the answer. *small false: it is too large to be remembered; what was appended does not matter then. */
typedef err (*part_answer_fn)(void *arg, struct buf *out, bool *small);

struct part_answer {
    str bytes;      /* aligned to 8 */
    struct part *p; /* borrowed */
    const struct fcache_entry *pin;
};

/* The remembered answer, or that of `find`, remembered from now on. *known false: there is none, it would be too large;
 * `find` may have been called all the same. Otherwise release with part_answer_done. Any thread. */
err part_answer(struct part *p, const struct part_ask *ask, part_answer_fn find, void *arg, struct part_answer *out,
                bool *known) __attribute__((warn_unused_result));
void part_answer_done(struct part_answer *a);

#endif
