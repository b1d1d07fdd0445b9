/*
 * usage.h: how often each metric name was queried, so that names nobody asks for can be found.
 *
 * Selectors that name a metric cost one lookup under a lock that is one of many. Those that don't
 * (`{job="x"}`, `{__name__=~"a.*"}`), and those that find nothing now, ask the index which names they mean, at most
 * once a minute each; their runs in between are added then. Only names that were found are kept, a bounded number.
 * Counts begin with the process. Any thread.
 */
#ifndef VARVE_QUERY_USAGE_H
#define VARVE_QUERY_USAGE_H

#include "query/plan.h"

struct usage;
struct usage *usage_create(const struct hash_key *key); /* key borrowed */
void usage_destroy(struct usage *u);                    /* NULL allowed */

/* A selector's series were opened; its selection is set. u NULL: nothing is noted. */
void usage_note(struct usage *u, struct db *db, const struct plan_select *s);
/* The same where an answer was known, so that no series were opened: names that it asked for are known, too. */
void usage_note_known(struct usage *u, const struct plan_select *s);
void usage_reset(struct usage *u);

struct name_use {
    uint64_t requests;
    int64_t last_s; /* unix seconds of the last one; 0 = never */
};
struct name_use usage_of(struct usage *u, str name);
int64_t usage_since(struct usage *u); /* unix seconds at which counting began */

#endif
