/*
 * explain.c: the plan of a query with what each operator did.
 *
 *   {"node":"aggregate","text":"sum(rate(x[5m]))","steps":61,"rows":1,"seconds":0.012,"children":[...]}
 *
 * rows and seconds (those of the children included) are of the node's operator, "slices" says in how many it ran
 * (seconds are then the sum over threads). What reads from storage, an instant or a range selector, also shows its time
 * range, how many series its selection has, the samples that it decoded (whole blocks) and the bytes of their columns;
 * blocks whose aggregates did cost neither, the head no bytes. Deep plans are cut: what is below EXPLAIN_DEPTH_MAX is
 * left out.
 */
#include "query/explain.h"

#include "query/parser.h"
#include "storage/base/json.h"

#define EXPLAIN_DEPTH_MAX 20
#define EXPLAIN_TEXT_MAX 500

static const char *kind_name(const struct plan_node *n)
{
    switch (n->kind) {
    case PLAN_NUMBER:
        return "number";
    case PLAN_STRING:
        return "string";
    case PLAN_SELECT:
        return "select";
    case PLAN_SAMPLES:
        return n->window.inner ? "subquery" : "samples";
    case PLAN_ROLLUP:
        return "rollup";
    case PLAN_AGGREGATE:
        return "aggregate";
    case PLAN_BINARY:
        return "binary";
    case PLAN_NEGATE:
        return "negate";
    case PLAN_CALL:
        return "call";
    }
    return "?";
}

static const struct op *op_of(const struct exec *x, const struct plan_node *n)
{
    for (const struct op *op = x->ops; op; op = op->opened_before)
        if (op->node == n) return op;
    return NULL;
}

/* What the operators of a node did: the one of the exec, or those of its slices together. */
struct work {
    bool any;
    uint64_t rows, ns, samples, bytes;
    unsigned slices;
};

static void add_work(struct work *w, const struct op *op)
{
    if (!op) return;
    w->any = true;
    w->rows += op->rows;
    w->ns += op->ns;
    w->samples += op->samples;
    w->bytes += op->bytes;
}

static struct work work_of(const struct exec *x, const struct plan_node *n)
{
    struct work w = {0};
    add_work(&w, op_of(x, n));
    const struct exec *slice;
    for (const struct exec_slice *at = NULL; (slice = exec_slice_at(x, &at)) != NULL;) {
        const struct op *op = op_of(slice, n);
        w.slices += op != NULL;
        add_work(&w, op);
    }
    return w;
}

static void put_text(struct json *j, const struct plan_node *n)
{
    struct buf text = {.max = EXPLAIN_TEXT_MAX};
    promql_print(n->expr, &text);
    json_key(j, "text");
    json_str(j, text.failed ? STR("(long)") : buf_as_str(&text));
    buf_deinit(&text);
}

static void put_selection(struct json *j, const struct plan_window *w)
{
    if (!w->select) return;
    json_key(j, "from");
    json_ms(j, w->select_min);
    json_key(j, "to");
    json_ms(j, w->select_max);
    if (!w->select->selection) return;
    json_key(j, "series");
    json_u64(j, selection_count(w->select->selection));
}

static void put_node(const struct exec *x, const struct plan_node *n, int depth, struct json *j)
{
    struct work work = work_of(x, n);
    json_object(j);
    json_key(j, "node");
    json_cstr(j, kind_name(n));
    put_text(j, n);
    json_key(j, "steps");
    json_u64(j, n->grid.n);
    if (n->kind == PLAN_SELECT || n->kind == PLAN_SAMPLES) put_selection(j, &n->window);
    if (work.any) {
        json_key(j, "rows");
        json_u64(j, work.rows);
        json_key(j, "seconds");
        json_double(j, (double)work.ns / 1e9);
    }
    if (work.any && (n->kind == PLAN_SELECT || (n->kind == PLAN_SAMPLES && n->window.select))) {
        json_key(j, "samples");
        json_u64(j, work.samples);
        json_key(j, "bytes");
        json_u64(j, work.bytes);
    }
    if (work.slices > 0) {
        json_key(j, "slices");
        json_u64(j, work.slices);
    }
    if (n->n_kids > 0 && depth < EXPLAIN_DEPTH_MAX) {
        json_key(j, "children");
        json_array(j);
        for (uint32_t i = 0; i < n->n_kids; i++)
            put_node(x, n->kids[i], depth + 1, j);
        json_array_end(j);
    }
    json_object_end(j);
}

void explain_put(const struct exec *x, struct buf *out)
{
    struct json j;
    json_init(&j, out);
    put_node(x, x->plan->root, 0, &j);
}
