/*
 * cli_progress.c: how far a long command is, on stderr.
 *
 * On a terminal one line is redrawn five times a second; elsewhere (a log, a pipe) a line is added
 * every ten seconds, so that logs stay short. One thread's.
 */
#include "server/cli_progress.h"

#include <stdio.h>
#include <unistd.h>

#include "storage/base/env.h"

#define BAR_EVERY_NS UINT64_C(200000000)
#define LINE_EVERY_NS UINT64_C(10000000000)
#define BAR_WIDTH 28

static uint64_t now_ns(void)
{
    return env_posix()->ops->mono_ns(env_posix());
}

void progress_start(struct progress *p, const char *rows, uint64_t total)
{
    *p = (struct progress){.rows = rows, .total = total, .start_ns = now_ns(), .bar = isatty(STDERR_FILENO)};
    p->next_ns = p->start_ns + (p->bar ? 0 : LINE_EVERY_NS);
}

double progress_seconds(const struct progress *p)
{
    return (double)(now_ns() - p->start_ns) / 1e9;
}

void progress_bytes(struct buf *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    size_t i = 0;
    while (v >= 1024 && i + 1 < ARRAY_LEN(units)) {
        v /= 1024;
        i++;
    }
    buf_printf(out, i == 0 ? "%.0f %s" : "%.1f %s", v, units[i]);
}

void progress_count(struct buf *out, double n)
{
    static const char units[] = {' ', 'k', 'M', 'G'};
    size_t i = 0;
    while (n >= 10000 && i + 1 < sizeof units) {
        n /= 1000;
        i++;
    }
    if (i == 0)
        buf_printf(out, "%.0f", n);
    else
        buf_printf(out, n < 100 ? "%.1f%c" : "%.0f%c", n, units[i]);
}

static void put_bar(struct buf *out, double share)
{
    int full = (int)(share * BAR_WIDTH);
    buf_u8(out, '[');
    for (int i = 0; i < BAR_WIDTH; i++)
        buf_u8(out, i < full ? '=' : i == full ? '>' : ' ');
    buf_printf(out, "] %3.0f%%  ", share * 100);
}

static void put_eta(struct buf *out, double seconds)
{
    unsigned s = seconds < 1e6 ? (unsigned)(seconds + 0.5) : 1000000u;
    if (s >= 3600)
        buf_printf(out, "  ETA %uh%02um", s / 3600, s / 60 % 60);
    else if (s >= 60)
        buf_printf(out, "  ETA %um%02us", s / 60, s % 60);
    else
        buf_printf(out, "  ETA %us", s);
}

void progress_line(const struct progress *p, double seconds, struct buf *out)
{
    double share = p->total > 0 ? (double)p->bytes / (double)p->total : 0;
    if (share > 1) share = 1;
    if (p->total > 0 && p->bar) put_bar(out, share);
    if (p->total > 0 && !p->bar) buf_printf(out, "%.0f%%  ", share * 100);
    progress_bytes(out, p->bytes);
    if (p->total > 0) {
        buf_str(out, STR(" of "));
        progress_bytes(out, p->total);
    }
    if (p->rows != NULL && seconds > 0) {
        buf_str(out, STR("  "));
        progress_count(out, (double)p->n / seconds);
        buf_printf(out, " %s/s", p->rows);
    }
    if (share > 0 && share < 1 && seconds > 1) put_eta(out, seconds / share - seconds);
}

void progress_update(struct progress *p, uint64_t bytes, uint64_t n)
{
    uint64_t now = now_ns();
    p->bytes = bytes;
    p->n = n;
    if (now < p->next_ns) return;
    p->next_ns = now + (p->bar ? BAR_EVERY_NS : LINE_EVERY_NS);
    struct buf line = {0};
    progress_line(p, (double)(now - p->start_ns) / 1e9, &line);
    fprintf(stderr, p->bar ? "\r%.*s\033[K" : "%.*s\n", (int)line.n, (const char *)line.data);
    fflush(stderr);
    buf_deinit(&line);
    p->shown = true;
}

void progress_clear(struct progress *p)
{
    if (p->bar && p->shown) fprintf(stderr, "\r\033[K");
    p->shown = false;
}
