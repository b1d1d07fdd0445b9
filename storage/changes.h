/*
 * changes.h: what writes and deletes have touched since a moment, for those who keep answers.
 *
 * A version stands for a moment. Asked about one later, it tells the oldest time of a sample that came or went since
 * then: an answer that depends on older samples only is still right. The last few hundred versions are known. Any
 * thread; the lock is a leaf.
 */
#ifndef VARVE_STORAGE_CHANGES_H
#define VARVE_STORAGE_CHANGES_H

#include <stdint.h>

struct changes;

struct changes *changes_create(void);
void changes_destroy(struct changes *c); /* NULL allowed */

/* Samples at t_min (ms) and perhaps later came or went. To be called when readers see them, before the write is
 * acknowledged: then whoever took a version before has either seen them or is told. */
void changes_note(struct changes *c, int64_t t_min);

/* The version of now. */
uint64_t changes_version(struct changes *c);
/* Samples before this time (ms) are as they were at the version: INT64_MAX if nothing was touched, INT64_MIN if the
 * version is not known any more. */
int64_t changes_since(struct changes *c, uint64_t version);

#endif
