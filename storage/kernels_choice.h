/*
 * kernels_choice.h: which variant of the tight loops (kernels.h) this process runs.
 *
 * There is one variant that every processor of the architecture can run, "portable", and others that need more. All
 * compute the same bits.
 */
#ifndef VARVE_STORAGE_KERNELS_CHOICE_H
#define VARVE_STORAGE_KERNELS_CHOICE_H

#include "storage/base/err.h"

/* Chooses the variant of this name, or the best that the processor can run if name is NULL. ERR_INVALID, naming those
 * there are, if it is unknown or needs what the processor lacks. Once at start, before there are other threads; until
 * then it is "portable". */
err kernels_choose(const char *name) __attribute__((warn_unused_result));

/* The name of the variant in use. Any thread. */
const char *kernels_chosen(void);
/* Calls `each` with the name of every variant that this processor can run, the best one last. Any thread. */
void kernels_each(void (*each)(void *context, const char *name), void *context);

#endif
