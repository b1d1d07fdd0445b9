/*
 * sim_model.c: the naive oracle of the simulator's workload.
 *
 * Invariants of a cell: `settled` is not empty; every entry of `writes` is unsettled; the first of
 * `writes` is PENDING (a MAYBE at the front is folded into the settled outcomes at once, since it
 * says no more than "or this"). What a read may give: walk the writes from the newest; each MAYBE
 * may show; the first PENDING shows if none of those did, and ends the walk; without one, any
 * settled outcome may show.
 */
#include "tests/sim/sim_model.h"

#include "storage/base/alloc.h"

struct sim_model *sim_model_create(size_t series)
{
    struct sim_model *m = mem_alloc(sizeof *m);
    *m = (struct sim_model){mem_zalloc(series * sizeof *m->series), series};
    return m;
}

static struct sim_cell clone_cell(const struct sim_cell *c)
{
    struct sim_cell copy = *c;
    copy.settled = mem_dup(c->settled, c->n_settled * sizeof *c->settled);
    copy.cap_settled = c->n_settled;
    copy.writes = c->n_writes ? mem_dup(c->writes, c->n_writes * sizeof *c->writes) : NULL;
    copy.cap_writes = c->n_writes;
    return copy;
}

struct sim_model *sim_model_clone(const struct sim_model *m)
{
    struct sim_model *copy = sim_model_create(m->n);
    for (size_t i = 0; i < m->n; i++) {
        const struct sim_series *from = &m->series[i];
        struct sim_series *to = &copy->series[i];
        to->attempted = from->attempted;
        to->cells = mem_grow(NULL, &to->cap, from->n + 1, sizeof *to->cells);
        to->n = from->n;
        for (size_t k = 0; k < from->n; k++)
            to->cells[k] = clone_cell(&from->cells[k]);
    }
    return copy;
}

void sim_model_destroy(struct sim_model *m)
{
    if (m == NULL) return;
    for (size_t i = 0; i < m->n; i++) {
        for (size_t k = 0; k < m->series[i].n; k++) {
            mem_free(m->series[i].cells[k].settled);
            mem_free(m->series[i].cells[k].writes);
        }
        mem_free(m->series[i].cells);
    }
    mem_free(m->series);
    mem_free(m);
}

size_t sim_model_find(const struct sim_series *s, int64_t t)
{
    size_t from = 0, to = s->n;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (s->cells[mid].t < t)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

bool sim_value_eq(struct sim_value a, struct sim_value b)
{
    if (!a.present || !b.present) return a.present == b.present;
    return a.hist == b.hist && a.bits == b.bits && a.start == b.start;
}

static void add_settled(struct sim_cell *c, struct sim_value v)
{
    for (size_t i = 0; i < c->n_settled; i++)
        if (sim_value_eq(c->settled[i], v)) return;
    c->settled = mem_grow(c->settled, &c->cap_settled, c->n_settled + 1, sizeof *c->settled);
    c->settled[c->n_settled++] = v;
}

static void set_settled(struct sim_cell *c, struct sim_value v)
{
    c->n_settled = 0;
    add_settled(c, v);
}

static void drop_writes(struct sim_cell *c, size_t n)
{
    c->n_writes -= n;
    if (n > 0) memmove(c->writes, c->writes + n, c->n_writes * sizeof *c->writes);
}

/* Restores the invariant that the first unsettled write is PENDING. */
static void fold(struct sim_cell *c)
{
    size_t n = 0;
    while (n < c->n_writes && c->writes[n].seq == 0)
        add_settled(c, c->writes[n++].value);
    drop_writes(c, n);
}

static struct sim_cell *cell_at(struct sim_series *s, int64_t t)
{
    size_t at = sim_model_find(s, t);
    if (at < s->n && s->cells[at].t == t) return &s->cells[at];
    s->cells = mem_grow(s->cells, &s->cap, s->n + 1, sizeof *s->cells);
    memmove(s->cells + at + 1, s->cells + at, (s->n - at) * sizeof *s->cells);
    s->n++;
    s->cells[at] = (struct sim_cell){.t = t};
    add_settled(&s->cells[at], (struct sim_value){0});
    return &s->cells[at];
}

static void cell_write(struct sim_cell *c, struct sim_value v, uint64_t seq)
{
    c->writes = mem_grow(c->writes, &c->cap_writes, c->n_writes + 1, sizeof *c->writes);
    c->writes[c->n_writes++] = (struct sim_write){seq, v};
    fold(c);
}

void sim_model_write(struct sim_model *m, size_t series, int64_t t, struct sim_value v, uint64_t seq)
{
    m->series[series].attempted = true;
    cell_write(cell_at(&m->series[series], t), v, seq);
}

static void cell_settle(struct sim_cell *c, uint64_t seq)
{
    size_t last = 0; /* one past the newest write that is settled now */
    for (size_t i = 0; i < c->n_writes; i++)
        if (c->writes[i].seq != 0 && c->writes[i].seq <= seq) last = i + 1;
    if (last == 0) return;
    set_settled(c, c->writes[last - 1].value);
    drop_writes(c, last);
    fold(c);
}

static void cell_unsettle(struct sim_cell *c, uint64_t seq)
{
    for (size_t i = 0; i < c->n_writes; i++)
        if (c->writes[i].seq <= seq) c->writes[i].seq = 0;
    fold(c);
}

void sim_model_settle(struct sim_model *m, uint64_t seq)
{
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->series[i].n; k++)
            cell_settle(&m->series[i].cells[k], seq);
}

void sim_model_unsettle(struct sim_model *m, uint64_t seq)
{
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < m->series[i].n; k++)
            cell_unsettle(&m->series[i].cells[k], seq);
}

void sim_model_delete(struct sim_model *m, size_t series, int64_t t_min, int64_t t_max, bool sure)
{
    struct sim_series *s = &m->series[series];
    struct sim_value absent = {0};
    for (size_t k = sim_model_find(s, t_min); k < s->n && s->cells[k].t <= t_max; k++) {
        if (sure) {
            s->cells[k].n_writes = 0;
            set_settled(&s->cells[k], absent);
        } else {
            cell_write(&s->cells[k], absent, 0);
        }
    }
}

static bool settled_allows(const struct sim_cell *c, struct sim_value v)
{
    for (size_t i = 0; i < c->n_settled; i++)
        if (sim_value_eq(c->settled[i], v)) return true;
    return false;
}

bool sim_cell_allows(const struct sim_cell *c, struct sim_value v)
{
    for (size_t i = c->n_writes; i-- > 0;) {
        if (sim_value_eq(c->writes[i].value, v)) return true;
        if (c->writes[i].seq != 0) return false;
    }
    return settled_allows(c, v);
}

void sim_cell_observe(struct sim_cell *c, struct sim_value v)
{
    c->n_writes = 0;
    set_settled(c, v);
}

bool sim_series_must_exist(const struct sim_series *s, int64_t t_min, int64_t t_max)
{
    struct sim_value absent = {0};
    for (size_t k = sim_model_find(s, t_min); k < s->n && s->cells[k].t <= t_max; k++)
        if (!sim_cell_allows(&s->cells[k], absent)) return true;
    return false;
}
