/*
 * log.c: leveled log lines as logfmt or JSON.
 *
 *   ts=2026-07-01T12:00:00.000Z level=info msg="part written" path=a/b.part rows=12
 *   {"ts":"2026-07-01T12:00:00.000Z","level":"info","msg":"part written","path":"a/b.part","rows":12}
 *
 * A line is built in a buffer of its own and written by one write(2), so lines of several threads
 * don't mix. Fields may carry bytes from outside: control characters are escaped, so a line stays one
 * line. A failing write is dropped: there is nowhere to report it. Any thread.
 */
#include "storage/base/log.h"

#include "storage/base/alloc.h"
#include "storage/base/env.h"
#include "storage/base/json.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* 8 KiB of fields escape to 6 times that at most, and so does a message, which is the program's own */
#define LOG_LINE_MAX (128u << 10)
#define LOG_FIELDS_MAX (8u << 10) /* longer fields are cut */

struct log {
    int fd; /* borrowed */
    enum log_level min;
    bool json;
    _Atomic uint64_t lines[LOG_ERROR + 1];
};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

struct log *log_create(int fd, enum log_level min, bool json)
{
    struct log *l = mem_zalloc(sizeof *l);
    l->fd = fd;
    l->min = min;
    l->json = json;
    return l;
}

void log_destroy(struct log *l)
{
    mem_free(l);
}

/* RFC 3339 in UTC with milliseconds. */
static void format_now(char *out, size_t size)
{
    struct env *env = env_posix();
    int64_t ms = env->ops->now_ms(env);
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    size_t n = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out + n, size - n, ".%03dZ", (int)(ms % 1000));
}

/* Copies text, control characters as \n, \t or \x1b, and quotes as \" if it stands inside quotes. */
static void put_escaped(struct buf *out, str text, bool quoted)
{
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = (uint8_t)text.p[i];
        if (c == '\n')
            buf_str(out, STR("\\n"));
        else if (c == '\t')
            buf_str(out, STR("\\t"));
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\x%02x", c);
        else if (quoted && (c == '"' || c == '\\'))
            buf_put(out, (char[]){'\\', (char)c}, 2);
        else
            buf_u8(out, c);
    }
}

static void put_logfmt(struct buf *out, const char *now, enum log_level level, const char *message, str fields)
{
    buf_printf(out, "ts=%s level=%s msg=\"", now, level_names[level]);
    put_escaped(out, str_of(message), true);
    buf_u8(out, '"');
    if (fields.n) buf_u8(out, ' ');
    put_escaped(out, fields, false);
}

/* Takes `key=value` or `key="value with spaces"` off the front of s; a quoted value ends at a quote
 * before a space or the end, so quotes inside don't break it. False at the end. */
static bool next_field(str *s, str *key, str *value)
{
    while (s->n && s->p[0] == ' ')
        *s = (str){s->p + 1, s->n - 1};
    const char *eq = s->n ? memchr(s->p, '=', s->n) : NULL;
    if (!eq) return false;
    const char *end = s->p + s->n, *at = eq + 1;
    *key = (str){s->p, (size_t)(eq - s->p)};
    bool quoted = at < end && *at == '"';
    if (quoted) at++;
    const char *stop = at;
    while (stop < end && !(quoted ? *stop == '"' && (stop + 1 == end || stop[1] == ' ') : *stop == ' '))
        stop++;
    *value = (str){at, (size_t)(stop - at)};
    const char *rest = quoted && stop < end ? stop + 1 : stop;
    *s = (str){rest, (size_t)(end - rest)};
    return true;
}

/* A plain JSON integer that any reader holds exactly. */
static bool is_integer(str s)
{
    size_t i = s.n && s.p[0] == '-' ? 1 : 0;
    if (s.n == i || s.n - i > 15 || (s.p[i] == '0' && s.n - i > 1)) return false;
    for (; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9') return false;
    return true;
}

static void put_json(struct buf *out, const char *now, enum log_level level, const char *message, str fields)
{
    struct json j;
    str key, value;
    json_init(&j, out);
    json_object(&j);
    json_key(&j, "ts");
    json_cstr(&j, now);
    json_key(&j, "level");
    json_cstr(&j, level_names[level]);
    json_key(&j, "msg");
    json_cstr(&j, message);
    while (next_field(&fields, &key, &value)) {
        json_key_str(&j, key);
        if (is_integer(value))
            json_raw(&j, value);
        else
            json_str(&j, value);
    }
    json_object_end(&j);
}

void log_write(struct log *l, enum log_level level, const char *message, const char *fields, ...)
{
    if (!l || level < l->min) return;
    struct buf text = {.max = LOG_FIELDS_MAX}, line = {.max = LOG_LINE_MAX};
    char now[40];
    va_list args;
    va_start(args, fields);
    char *to = (char *)buf_reserve(&text, LOG_FIELDS_MAX);
    int n = vsnprintf(to, LOG_FIELDS_MAX, fields, args); /* longer fields are cut */
    va_end(args);
    text.n = n < 0 ? 0 : (size_t)n < LOG_FIELDS_MAX ? (size_t)n : LOG_FIELDS_MAX - 1;
    format_now(now, sizeof now);
    if (l->json)
        put_json(&line, now, level, message, buf_as_str(&text));
    else
        put_logfmt(&line, now, level, message, buf_as_str(&text));
    buf_u8(&line, '\n');
    if (line.failed) line.data[line.n - 1] = '\n';
    atomic_fetch_add_explicit(&l->lines[level], 1, memory_order_relaxed);
    ssize_t written = write(l->fd, line.data, line.n);
    (void)written;
    buf_deinit(&text);
    buf_deinit(&line);
}

uint64_t log_count(const struct log *l, enum log_level level)
{
    return l ? atomic_load_explicit(&l->lines[level], memory_order_relaxed) : 0;
}

bool log_level_parse(str s, enum log_level *level)
{
    for (size_t i = 0; i < ARRAY_LEN(level_names); i++) {
        if (!str_eq(s, str_of(level_names[i]))) continue;
        *level = (enum log_level)i;
        return true;
    }
    return false;
}
