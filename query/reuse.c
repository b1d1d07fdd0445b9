/*
 * reuse.c: which range queries share steps, and how known and new steps become one answer (reuse.h).
 *
 * A step may be taken over when no sample at or before its time has come or gone since it was computed, nothing that it
 * looked at has left the retention, and its value does not depend on where the query begins or ends: no `@`, no
 * negative offset, no series chosen for the range as a whole. Answers with native histograms are not kept.
 */
#include "query/reuse.h"

#include "query/functions.h"

static bool modifiers_fit(const struct modifiers *m)
{
    bool ahead = m->offset.expr != NULL || m->offset.ms < 0 || m->smoothed || m->anchored;
    return !ahead && m->at == AT_NONE;
}

/* expr_walk */
static void look_at(void *arg, struct expr *e)
{
    bool *fits = arg;
    switch (e->kind) {
    case EXPR_SELECTOR:
        *fits &= modifiers_fit(&e->selector.mod);
        break;
    case EXPR_RANGE:
        *fits &= e->range.range.expr == NULL;
        break;
    case EXPR_SUBQUERY:
        *fits &= modifiers_fit(&e->subquery.mod) && e->subquery.range.expr == NULL && e->subquery.step.expr == NULL;
        break;
    case EXPR_AGGREGATE:
        *fits &= e->aggregate.op != AGG_LIMITK; /* takes the first that the index names */
        break;
    case EXPR_CALL:
        if (e->call.fn->class != FN_SPECIAL) break;
        *fits &= e->call.fn->code != SPECIAL_INFO && e->call.fn->code != SPECIAL_START;
        *fits &= e->call.fn->code != SPECIAL_END && e->call.fn->code != SPECIAL_RANGE;
        break;
    default:
        break;
    }
}

/* True if something is read, and nothing that the retention hides by now. */
static bool reads_what_stays(const struct plan *plan, int64_t retention_start)
{
    for (const struct plan_select *s = plan->selects; s; s = s->next)
        if (s->t_min < retention_start) return false;
    return plan->selects != NULL;
}

/* Everything that the value of a step depends on; and about how many steps there are, so that a dashboard's day does
 * not take the place of its week. */
static void put_question(struct buf *out, const struct plan *plan, const struct query_request *rq)
{
    const struct grid *g = &plan->grid;
    buf_lenstr(out, rq->text);
    buf_zigzag(out, g->step);
    buf_zigzag(out, g->start % g->step);
    buf_zigzag(out, plan->lookback);
    buf_u8(out, (uint8_t)(32 - __builtin_clz(g->n)));
    buf_u8(out, rq->round);
    buf_zigzag(out, rq->round_digits);
    for (uint32_t i = 0; rq->extra && i < rq->extra->n; i++) {
        buf_varint(out, rq->extra->sets[i].n);
        matchers_encode(rq->extra->sets[i].m, rq->extra->sets[i].n, out);
    }
}

/* How many of the grid's steps, from the first on, are in the kept answer and older than what was touched since. */
static uint32_t steps_known(const struct kept_result *kept, const struct grid *g, int64_t unchanged_before)
{
    if (g->start < kept->grid.start || g->start > grid_end(&kept->grid) || unchanged_before <= g->start) return 0;
    int64_t last = grid_end(&kept->grid) < unchanged_before ? grid_end(&kept->grid) : unchanged_before - 1;
    int64_t n = (last - g->start) / g->step + 1;
    return n < g->n ? (uint32_t)n : g->n;
}

void reuse_begin(struct reuse *u, struct result_cache *cache, struct db *db, const struct plan *plan, struct expr *e,
                 const struct query_request *rq)
{
    bool fits = cache != NULL && plan->step > 0 && !rq->stats && !rq->explain && !rq->nocache;
    *u = (struct reuse){.grid = plan->grid};
    if (fits) fits = reads_what_stays(plan, storage_retention_start(db));
    if (fits) expr_walk(e, look_at, &fits);
    if (!fits) return;
    u->cache = cache;
    u->version = storage_version(db);
    put_question(&u->question, plan, rq);
    u->kept = result_cache_get(cache, buf_as_str(&u->question));
    if (u->kept == NULL) return;
    u->n = steps_known(u->kept, &u->grid, storage_unchanged_before(db, u->kept->version));
    if (u->n > 0) u->first = (uint32_t)((u->grid.start - u->kept->grid.start) / u->grid.step);
}

/* ---- joining ---------------------------------------------------------------------------------------------------- */

/* The n known steps of one row (NULL: it had none), then those of a new one (likewise). */
static err join_row(const struct reuse *u, struct exec *x, const struct held_row *known, const struct held_row *new,
                    struct held_row *out)
{
    uint32_t rest = u->grid.n - u->n;
    *out = (struct held_row){.labels = known != NULL ? known->labels : new->labels};
    TRY(exec_columns(x, 1, u->grid.n, &out->v));
    if (known != NULL)
        memcpy(out->v, known->v + u->first, u->n * sizeof *out->v);
    else
        column_clear(out->v, u->n);
    if (new == NULL) {
        column_clear(out->v + u->n, rest);
        return NULL;
    }
    memcpy(out->v + u->n, new->v, rest * sizeof *out->v);
    if (new->h == NULL) return NULL;
    TRY(exec_hist_column(x, u->grid.n, &out->h));
    memcpy(out->h + u->n, new->h, rest * sizeof(struct hist *));
    return NULL;
}

/* All steps are known: rows are shown where they are. */
static struct held_row whole_row(const struct reuse *u, const struct held_row *known)
{
    return (struct held_row){.labels = known->labels, .v = known->v + u->first};
}

/* Which of two sorted lists goes on: negative the first, positive the second, 0 both. */
static int next_of(const struct held_rows *rows, size_t at, const struct kept_result *kept, size_t kept_at)
{
    if (at == rows->n) return -1;
    if (kept_at == kept->n_rows) return 1;
    return labels_cmp(&kept->rows[kept_at].labels, &rows->v[at].labels);
}

err reuse_join(const struct reuse *u, struct exec *x, struct held_rows *rows)
{
    if (u->n == 0) return NULL;
    const struct kept_result *kept = u->kept;
    struct held_rows all = {.v = arena_alloc(x->arena, (kept->n_rows + rows->n + 1) * sizeof *all.v)};
    for (size_t at = 0, kept_at = 0; at < rows->n || kept_at < kept->n_rows;) {
        int order = next_of(rows, at, kept, kept_at);
        const struct held_row *known = order <= 0 ? &kept->rows[kept_at++] : NULL;
        const struct held_row *new = order >= 0 ? &rows->v[at++] : NULL;
        struct row seen = {.v = known != NULL ? known->v + u->first : NULL};
        if (known != NULL && !row_any(&seen, u->n)) known = NULL;
        if (known == NULL && new == NULL) continue;
        if (u->n == u->grid.n)
            all.v[all.n++] = whole_row(u, known);
        else
            TRY(join_row(u, x, known, new, &all.v[all.n++]));
        TRY(budget_tick(x->budget, 0));
    }
    *rows = all;
    return NULL;
}

/* ---- keeping ---------------------------------------------------------------------------------------------------- */

#define NOTES_MAX (2 * NOTE_KINDS * NOTES_SHOWN)

/* What is said of an answer. */
struct said {
    struct kept_note v[NOTES_MAX];
    size_t n;
    uint32_t omitted[NOTE_KINDS];
};

/* Notes that were counted only, by the share of steps that is left; rounded down, or they would never end. */
static uint32_t omitted_before(const struct reuse *u, size_t kind)
{
    return (uint32_t)((uint64_t)u->kept->omitted[kind] * u->n / u->kept->grid.n);
}

/* A note tells no step: that it goes when none is left of those it was made with is as exact as it gets. */
static bool is_left(const struct reuse *u, const struct kept_note *note)
{
    return note->until_ms >= u->grid.start && note->from_ms < grid_time(&u->grid, u->n);
}

static void add_before(const struct kept_note *note, size_t fresh, struct said *said)
{
    for (size_t i = 0; i < fresh; i++)
        if (str_eq(said->v[i].text, note->text)) return;
    if (said->n < NOTES_MAX)
        said->v[said->n++] = *note;
    else
        said->omitted[note->kind]++;
}

/* Notes of the evaluated steps, and those of before that may be about a known one. */
static void gather_notes(const struct reuse *u, struct notes *notes, struct said *said)
{
    said->n = notes_list(notes, said->v, said->omitted);
    size_t fresh = said->n;
    for (size_t i = 0; i < fresh; i++) {
        said->v[i].from_ms = grid_time(&u->grid, u->n);
        said->v[i].until_ms = grid_end(&u->grid);
    }
    if (u->n == 0) return;
    for (size_t i = 0; i < u->kept->n_notes; i++)
        if (is_left(u, &u->kept->notes[i])) add_before(&u->kept->notes[i], fresh, said);
    for (size_t kind = 0; kind < NOTE_KINDS; kind++)
        said->omitted[kind] += omitted_before(u, kind);
}

static void repeat_notes(const struct reuse *u, struct notes *notes)
{
    for (size_t i = 0; i < u->kept->n_notes; i++)
        if (is_left(u, &u->kept->notes[i])) notes_show(notes, &u->kept->notes[i]);
    for (size_t kind = 0; kind < NOTE_KINDS; kind++)
        notes_omit(notes, (enum note_kind)kind, omitted_before(u, kind));
}

static bool can_be_kept(const struct reuse *u, const struct held_rows *rows)
{
    bool more = u->cache != NULL && u->n < u->grid.n && rows->n > 0;
    for (size_t i = 0; i < rows->n && more; i++)
        more = rows->v[i].h == NULL;
    return more;
}

void reuse_keep(const struct reuse *u, const struct held_rows *rows, struct notes *notes)
{
    if (can_be_kept(u, rows)) {
        struct said said;
        gather_notes(u, notes, &said);
        struct kept_result r = {.grid = u->grid,
                                .version = u->version,
                                .rows = rows->v,
                                .n_rows = rows->n,
                                .notes = said.v,
                                .n_notes = said.n};
        memcpy(r.omitted, said.omitted, sizeof r.omitted);
        result_cache_put(u->cache, buf_as_str(&u->question), &r);
    }
    if (u->n > 0) repeat_notes(u, notes);
}

void reuse_end(struct reuse *u)
{
    if (u->cache != NULL) result_cache_release(u->cache, u->kept);
    buf_deinit(&u->question);
}
