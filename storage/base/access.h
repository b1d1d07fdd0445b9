/*
 * access.h: errors of file operations that say who may do what and how to mend it.
 */
#ifndef VARVE_STORAGE_BASE_ACCESS_H
#define VARVE_STORAGE_BASE_ACCESS_H

#include "storage/base/err.h"

/*
 * As err_errno(errnum, "%s %s", what, path). If access was denied, the message also names the path that denies it, its
 * owner, this process's ids and the command that helps; if the file system is read-only, it says so. Any thread.
 */
err access_error(int errnum, const char *what, const char *path) __attribute__((warn_unused_result, returns_nonnull));

#endif
