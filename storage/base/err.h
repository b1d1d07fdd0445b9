/*
 * err.h: errors are values.
 *
 * An `err` is NULL when all went well, else an owned, heap-allocated code with a message. Whoever
 * receives one hands it on (TRY), adds context (err_wrap) or ends it with err_free. Running out of
 * memory yields a static instance, so making an error never fails.
 */
#ifndef VARVE_STORAGE_BASE_ERR_H
#define VARVE_STORAGE_BASE_ERR_H

#include "storage/base/types.h"

enum err_code {
    ERR_OK = 0,
    ERR_INVALID,     /* the caller's input is wrong: HTTP 400 */
    ERR_TOO_LARGE,   /* input over a size limit: 413 */
    ERR_UNSUPPORTED, /* encoding or media type not taken: 415 */
    ERR_NOT_FOUND,   /* 404 */
    ERR_LIMIT,       /* a budget or limit of a query is exceeded: 422 */
    ERR_EXECUTION,   /* a query is well-formed but can't be answered: 422 */
    ERR_TIMEOUT,     /* deadline passed: 503 */
    ERR_CANCELED,    /* the client went away: 499 */
    ERR_BUSY,        /* try again later: 503 */
    ERR_READ_ONLY,   /* low disk: 503 with Retry-After */
    ERR_IO,          /* the operating system failed us: 500 */
    ERR_NO_SPACE,    /* disk full: 503 with Retry-After */
    ERR_CORRUPT,     /* bytes on disk are not what was written: 500 */
    ERR_LOCKED,      /* another process owns the data directory */
    ERR_NO_MEMORY,
    ERR_INTERNAL,
};

struct err;
typedef struct err *err;

/* New error with a printf message. The result is owned by the caller. Any thread. */
err err_new(enum err_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3), warn_unused_result, returns_nonnull, cold));

/* As err_new with ERR_IO (or ERR_NO_SPACE for ENOSPC/EDQUOT, ERR_NOT_FOUND for ENOENT), ": strerror" appended. */
err err_errno(int errnum, const char *format, ...)
    __attribute__((format(printf, 2, 3), warn_unused_result, returns_nonnull, cold));

/* Puts "context: " before e's message; takes e, returns it (or its replacement). NULL stays NULL. */
err err_wrap(err e, const char *format, ...) __attribute__((format(printf, 2, 3), warn_unused_result, cold));

/* ERR_CORRUPT is born here only: a breakpoint, and one counter that /metrics shows. */
err err_corrupt(const char *format, ...)
    __attribute__((format(printf, 1, 2), warn_unused_result, returns_nonnull, cold));

/* How many corruption errors were made since the start. */
uint64_t err_corrupt_count(void);

enum err_code err_code(const struct err *e);   /* ERR_OK for NULL */
const char *err_message(const struct err *e);  /* NUL-terminated; "ok" for NULL; valid until err_free */
const char *err_code_name(enum err_code code); /* "invalid", "corrupt", ... */
void err_free(err e);                          /* NULL allowed */

/* Returns from the calling function when the call failed. */
#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        err try_e_ = (call);                                                                                           \
        if (__builtin_expect(try_e_ != NULL, 0)) return try_e_;                                                        \
    } while (0)

/* Stores the failure in the local `err e` and jumps to the local label `out`. */
#define TRY_OUT(call)                                                                                                  \
    do {                                                                                                               \
        e = (call);                                                                                                    \
        if (__builtin_expect(e != NULL, 0)) goto out;                                                                  \
    } while (0)

/* In clean-up: keeps the local `err e` if it is set, else takes this call's. */
#define KEEP_FIRST(call)                                                                                               \
    do {                                                                                                               \
        err keep_e_ = (call);                                                                                          \
        if (e == NULL)                                                                                                 \
            e = keep_e_;                                                                                               \
        else                                                                                                           \
            err_free(keep_e_);                                                                                         \
    } while (0)

#endif
