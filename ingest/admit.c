/*
 * admit.c: one request on its way into storage.
 *
 * Rows are handed over in batches of at most ROWS_SAMPLES_MAX samples, so a body of any size needs
 * bounded memory; nearly all bodies are one batch. Batches of one request are written in order, and
 * the last sequence number stands for all of them. What storage refuses series by series is counted
 * and named here, with the line or the text of the series.
 *
 * A struct admit lives on the stack of one request, in one thread; its arena is the request's.
 */
#include "ingest/admit.h"

#include <stdarg.h>
#include <stdio.h>

#include "storage/base/assert.h"

static const char *const reasons[REJECT_N] = {
    [REJECT_MALFORMED] = "malformed", [REJECT_LABELS] = "bad_labels", [REJECT_HISTOGRAM] = "bad_histogram",
    [REJECT_TOO_OLD] = "too_old",     [REJECT_TOO_NEW] = "too_new",
};

/* ---- counters ----------------------------------------------------------------------------------- */

void protocol_init(struct protocol *p, struct metrics *m, const char *name)
{
    char labels[128];
    p->name = name;
    snprintf(labels, sizeof labels, "protocol=\"%s\"", name);
    p->requests = metrics_counter(m, "varve_ingest_requests_total", labels, "Write requests.");
    p->failed = metrics_counter(m, "varve_ingest_requests_failed_total", labels,
                                "Write requests that were not answered with success.");
    p->bytes = metrics_counter(m, "varve_ingest_bytes_total", labels, "Bytes of write requests as received.");
    p->raw_bytes =
        metrics_counter(m, "varve_ingest_raw_bytes_total", labels, "Bytes of write requests after decompression.");
    p->samples = metrics_counter(m, "varve_ingest_samples_total", labels, "Samples taken.");
    p->seconds = metrics_histogram(m, "varve_ingest_seconds", labels,
                                   "Time to decode and append a write request, without the wait for the log.");
    p->exemplars = metrics_counter(m, "varve_ingest_exemplars_total", labels, "Exemplars taken.");
    for (int i = 0; i < REJECT_N; i++) {
        snprintf(labels, sizeof labels, "protocol=\"%s\",reason=\"%s\"", name, reasons[i]);
        p->rejected[i] =
            metrics_counter(m, "varve_ingest_samples_rejected_total", labels, "Samples or lines refused, by reason.");
    }
}

/* ---- refusals ----------------------------------------------------------------------------------- */

void admit_reject(struct admit *a, enum reject why, uint64_t n, uint32_t line, const char *format, ...)
{
    char text[512];
    a->rejected[why] += n;
    if (a->n_errors == ADMIT_ERRORS_SHOWN) return;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0) length = 0;
    str kept = {text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1};
    a->errors[a->n_errors++] = (struct admit_error){line, arena_str(a->arena, kept)};
}

uint64_t admit_rejected(const struct admit *a)
{
    uint64_t n = 0;
    for (int i = 0; i < REJECT_N; i++)
        n += a->rejected[i];
    return n;
}

/* ---- labels ------------------------------------------------------------------------------------- */

void admit_init_tag(struct admit *a)
{
    struct buf text = {0};
    buf_lenstr(&text, str_of(a->protocol->name));
    for (uint32_t i = 0; i < a->extra.n; i++) {
        buf_lenstr(&text, a->extra.v[i].name);
        buf_lenstr(&text, a->extra.v[i].value);
    }
    a->tag = hash128(a->key, text.data, text.n);
    buf_deinit(&text);
}

/* Extra labels win over the series' own of the same name. */
static void add_extra(const struct admit *a, struct arena *arena, struct labels *ls)
{
    struct label *v = arena_alloc(arena, (ls->n + a->extra.n) * sizeof v[0]);
    uint32_t n = 0;
    for (uint32_t i = 0; i < ls->n; i++) {
        bool replaced = false;
        for (uint32_t k = 0; k < a->extra.n && !replaced; k++)
            replaced = str_eq(ls->v[i].name, a->extra.v[k].name);
        if (!replaced) v[n++] = ls->v[i];
    }
    memcpy(v + n, a->extra.v, a->extra.n * sizeof v[0]);
    *ls = (struct labels){v, n + a->extra.n};
}

static err parse_series(const struct admit *a, str raw, struct arena *arena, struct labels *out)
{
    TRY(a->parse(raw, arena, out));
    if (a->extra.n > 0) add_extra(a, arena, out);
    return NULL;
}

static err resolve(void *arg, uint32_t i, struct arena *arena, struct labels *out)
{
    const struct admit *a = arg;
    const struct rows *rows = a->rows;
    str raw = i < rows->n_series
                  ? (str){rows->series[i].raw, rows->series[i].raw_bytes}
                  : (str){rows->exemplars[i - rows->n_series].raw, rows->exemplars[i - rows->n_series].raw_bytes};
    return parse_series(a, raw, arena, out);
}

str admit_series_text(struct admit *a, str raw)
{
    enum { SHOWN_MAX = 200 };
    struct labels ls;
    err e = parse_series(a, raw, a->arena, &ls);
    if (e) {
        err_free(e);
        return STR("with unreadable labels");
    }
    struct buf text = {0};
    labels_print(&ls, &text);
    str s = arena_str(a->arena, buf_as_str(&text));
    buf_deinit(&text);
    if (s.n > SHOWN_MAX) s.n = SHOWN_MAX;
    return s;
}

/* ---- storage ------------------------------------------------------------------------------------ */

static void count_refusals(struct admit *a, struct append_result *r)
{
    a->rejected[REJECT_LABELS] += r->bad_labels;
    a->rejected[REJECT_TOO_OLD] += r->too_old;
    a->rejected[REJECT_TOO_NEW] += r->too_new;
    if (r->first == NULL) return;
    if (a->n_errors < ADMIT_ERRORS_SHOWN && r->first_series < a->rows->n_series) {
        const struct batch_series *s = &a->rows->series[r->first_series];
        str series = admit_series_text(a, (str){s->raw, s->raw_bytes});
        admit_reject(a, REJECT_LABELS, 0, a->rows->places[r->first_series], "series %.*s: %s", STR_ARG(series),
                     err_message(r->first));
    }
    err_free(r->first);
}

/* Other refusals of exemplars are counted by storage only: as in Prometheus, they cost the sender nothing. */
static void count_exemplars(struct admit *a, const struct append_result *r)
{
    a->exemplars += r->exemplars;
    if (r->exemplars_late == 0 || !a->late_exemplars_said) return;
    const struct batch_exemplar *x = &a->rows->exemplars[r->first_late];
    str series = admit_series_text(a, (str){x->raw, x->raw_bytes});
    admit_reject(a, REJECT_MALFORMED, 0, 0, "series %.*s: %u exemplars are out of order: older than the newest one",
                 STR_ARG(series), r->exemplars_late);
}

bool admit_flush(struct admit *a)
{
    if (a->failure) return false;
    if (a->rows->n_samples + a->rows->n_exemplars == 0) {
        rows_clear(a->rows);
        return true;
    }
    struct batch batch = rows_batch(a->rows);
    batch.resolve = resolve;
    batch.resolve_arg = a;
    batch.require_name = true;
    struct append_result result = {0};
    a->failure = storage_append(a->db, &batch, &result);
    if (a->failure == NULL) {
        a->accepted += result.accepted;
        a->accepted_hists += result.accepted_hists;
        if (result.seq) a->seq = result.seq;
        count_refusals(a, &result);
        count_exemplars(a, &result);
    }
    rows_clear(a->rows);
    return a->failure == NULL;
}

bool admit_exemplar_room(struct admit *a)
{
    return rows_exemplar_room(a->rows) || admit_flush(a);
}

bool admit_room_within(struct admit *a)
{
    if (__builtin_expect(rows_room(a->rows, 1), 1)) return true;
    check(a->rows->n_series > 0);
    struct batch_series open = a->rows->series[a->rows->n_series - 1];
    uint32_t line = a->rows->places[a->rows->n_series - 1];
    if (!admit_flush(a) || !rows_room(a->rows, 1)) return false;
    rows_series(a->rows, open.alias, (str){open.raw, open.raw_bytes}, line);
    return true;
}
