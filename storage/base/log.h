/*
 * log.h: leveled, structured logging: logfmt or JSON lines on a file descriptor.
 *
 *   log_info(log, "part written", "path=%s rows=%zu", path, rows);
 *
 * The fields are a printf of key=value pairs separated by spaces (values with spaces in "quotes");
 * in JSON they become members. One write(2) a line. A NULL log discards. Any thread.
 */
#ifndef VARVE_STORAGE_BASE_LOG_H
#define VARVE_STORAGE_BASE_LOG_H

#include "storage/base/types.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log;
struct log *log_create(int fd, enum log_level min, bool json);
void log_destroy(struct log *l);
void log_write(struct log *l, enum log_level level, const char *message, const char *fields, ...)
    __attribute__((format(printf, 4, 5)));
/* Lines written per level since the start (for /metrics). */
uint64_t log_count(const struct log *l, enum log_level level);
/* "debug" ... "error" → level; false if none of them. */
bool log_level_parse(str s, enum log_level *level);

#define log_debug(l, ...) log_write((l), LOG_DEBUG, __VA_ARGS__)
#define log_info(l, ...) log_write((l), LOG_INFO, __VA_ARGS__)
#define log_warn(l, ...) log_write((l), LOG_WARN, __VA_ARGS__)
#define log_error(l, ...) log_write((l), LOG_ERROR, __VA_ARGS__)

#endif
