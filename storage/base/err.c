/*
 * err.c: error values.
 *
 * One heap block an error: code, then the NUL-terminated message in the same block. The receiver
 * owns it. When the heap is dry the static `out_of_memory` stands in; err_free and err_wrap know it,
 * so it is never freed or changed. Any thread; an err itself belongs to one thread at a time.
 */
#include "storage/base/err.h"

#include "storage/base/alloc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

struct err {
    enum err_code code;
    char message[];
};

static const struct {
    enum err_code code;
    char message[16];
} out_of_memory = {ERR_NO_MEMORY, "out of memory"};

static _Atomic uint64_t corrupt_count; /* a statistic only: nothing decides by it */

static err no_memory(void)
{
    return (err)&out_of_memory;
}

static bool is_static(const struct err *e)
{
    return (const void *)e == (const void *)&out_of_memory;
}

/* An error whose message is the formatted text and then `suffix`. */
static err make(enum err_code code, const char *suffix, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t text = n > 0 ? (size_t)n : 0, tail = strlen(suffix);
    err e = mem_try_alloc(sizeof *e + text + tail + 1);
    if (!e) return no_memory();
    e->code = code;
    e->message[0] = '\0';
    if (text) vsnprintf(e->message, text + 1, format, args);
    memcpy(e->message + text, suffix, tail + 1);
    return e;
}

err err_new(enum err_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err e = make(code, "", format, args);
    va_end(args);
    return e;
}

static enum err_code code_of_errno(int errnum)
{
    if (errnum == ENOSPC || errnum == EDQUOT) return ERR_NO_SPACE;
    return errnum == ENOENT ? ERR_NOT_FOUND : ERR_IO;
}

err err_errno(int errnum, const char *format, ...)
{
    char suffix[164];
    /* safe between threads in glibc (from 2.32) and musl, which disagree about strerror_r */
    snprintf(suffix, sizeof suffix, ": %s", strerror(errnum));
    va_list args;
    va_start(args, format);
    err e = make(code_of_errno(errnum), suffix, format, args);
    va_end(args);
    return e;
}

err err_wrap(err e, const char *format, ...)
{
    if (!e || is_static(e)) return e;
    size_t n = strlen(e->message);
    char *suffix = mem_try_alloc(n + 3);
    if (!suffix) return e;
    memcpy(suffix, ": ", 2);
    memcpy(suffix + 2, e->message, n + 1);
    va_list args;
    va_start(args, format);
    err wrapped = make(e->code, suffix, format, args);
    va_end(args);
    mem_free(suffix);
    if (is_static(wrapped)) return e; /* the cause is worth more than "out of memory" */
    mem_free(e);
    return wrapped;
}

err err_corrupt(const char *format, ...)
{
    atomic_fetch_add_explicit(&corrupt_count, 1, memory_order_relaxed);
    va_list args;
    va_start(args, format);
    err e = make(ERR_CORRUPT, "", format, args);
    va_end(args);
    return e;
}

uint64_t err_corrupt_count(void)
{
    return atomic_load_explicit(&corrupt_count, memory_order_relaxed);
}

enum err_code err_code(const struct err *e)
{
    return e ? e->code : ERR_OK;
}

const char *err_message(const struct err *e)
{
    return e ? e->message : "ok";
}

const char *err_code_name(enum err_code code)
{
    static const char *const names[] = {
        [ERR_OK] = "ok",
        [ERR_INVALID] = "invalid",
        [ERR_TOO_LARGE] = "too_large",
        [ERR_UNSUPPORTED] = "unsupported",
        [ERR_NOT_FOUND] = "not_found",
        [ERR_LIMIT] = "limit",
        [ERR_EXECUTION] = "execution",
        [ERR_TIMEOUT] = "timeout",
        [ERR_CANCELED] = "canceled",
        [ERR_BUSY] = "busy",
        [ERR_READ_ONLY] = "read_only",
        [ERR_IO] = "io",
        [ERR_NO_SPACE] = "no_space",
        [ERR_CORRUPT] = "corrupt",
        [ERR_LOCKED] = "locked",
        [ERR_NO_MEMORY] = "no_memory",
        [ERR_INTERNAL] = "internal",
    };
    return (size_t)code < ARRAY_LEN(names) ? names[code] : "unknown";
}

void err_free(err e)
{
    if (e && !is_static(e)) mem_free(e);
}
