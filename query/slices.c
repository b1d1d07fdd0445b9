/*
 * slices.c: cutting a tree into slices, and running them.
 *
 * The calling thread works on the slices like its helpers do, so it never waits for a thread to become
 * free: helpers that come late find nothing left. They may come when the query is long over, which is
 * why `spread` is counted. Everything of a slice is written by the one thread that runs it and read by
 * the caller after it has seen the slice done under the lock.
 */
#include "query/slices.h"

#include <pthread.h>

#include "storage/base/alloc.h"

/* Rough costs on one core, in ns; what matters is not to wake threads (tens of µs) for little. */
#define COST_SERIES 1500
#define COST_STEP 20
#define SLICE_COST_MIN 400000
#define SLICES_A_THREAD 2 /* so that a thread that got the light ones takes one more */

/* ---- what can be spread, and how far -------------------------------------------------------------------------- */

/* Only the first kid has rows of its own; parameters are constants. */
static bool constant_params(const struct plan_node *n)
{
    for (uint32_t i = 1; i < n->n_kids; i++)
        if (n->kids[i]->kind != PLAN_NUMBER) return false;
    return true;
}

/* The selector at the end of a chain of per-series operators; NULL if it is no such chain. */
static const struct plan_node *selector_of(const struct plan_node *n)
{
    for (;; n = n->kids[0]) {
        if (n->repeat) return NULL;
        if (n->kind == PLAN_SELECT || n->kind == PLAN_SAMPLES) return n->window.select ? n : NULL;
        bool per_series = n->kind == PLAN_NEGATE || (n->kind == PLAN_ROLLUP && n->fn->class != FN_SPECIAL) ||
                          (n->kind == PLAN_CALL && n->fn->class == FN_MAP);
        if (!per_series || n->n_kids == 0 || !constant_params(n)) return NULL;
    }
}

err slices_worth(struct exec *x, const struct plan_node *node, unsigned *n)
{
    *n = 1;
    /* a fold that gives up is begun again: samples that are counted must be read once */
    bool allowed = x->helpers && !x->plan->tally;
    const struct plan_node *selector = allowed ? selector_of(node) : NULL;
    if (!selector) return NULL;
    struct selection *s;
    TRY(exec_selection(x, selector->window.select, &s));
    uint64_t series = selection_count(s);
    uint64_t worth = series * (COST_SERIES + (uint64_t)COST_STEP * node->grid.n) / SLICE_COST_MIN;
    unsigned most = (worker_threads(x->helpers) + 1) * SLICES_A_THREAD;
    if (worth > series) worth = series;
    if (worth > 1) *n = worth < most ? (unsigned)worth : most;
    return NULL;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

struct exec_slice {
    struct exec exec;
    struct arena arena;
    struct exec_slice *next;
    err outcome;
};

struct spread {
    const struct plan_node *node;
    err (*fn)(void *arg, unsigned i, struct op *op);
    void *arg;
    unsigned n;
    struct exec_slice **slices;
    pthread_mutex_t lock;
    pthread_cond_t all_done;
    unsigned taken, done; /* slices; guarded by lock */
    unsigned refs;        /* the caller and helpers to come; guarded by lock */
};

static bool take(struct spread *s, unsigned *i)
{
    pthread_mutex_lock(&s->lock);
    *i = s->taken;
    bool any = s->taken < s->n;
    s->taken += any;
    pthread_mutex_unlock(&s->lock);
    return any;
}

static err run_slice(struct spread *s, unsigned i)
{
    struct op *op;
    TRY(exec_open(&s->slices[i]->exec, s->node, &op));
    return s->fn(s->arg, i, op);
}

static void work(struct spread *s)
{
    unsigned i;
    while (take(s, &i)) {
        s->slices[i]->outcome = run_slice(s, i);
        pthread_mutex_lock(&s->lock);
        if (++s->done == s->n) pthread_cond_signal(&s->all_done);
        pthread_mutex_unlock(&s->lock);
    }
}

static void unref(struct spread *s)
{
    pthread_mutex_lock(&s->lock);
    bool last = --s->refs == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last) return;
    pthread_cond_destroy(&s->all_done);
    pthread_mutex_destroy(&s->lock);
    mem_free(s->slices);
    mem_free(s);
}

/* worker_fn */
static void help(void *arg)
{
    work(arg);
    unref(arg);
}

static void call_helpers(struct exec *x, struct spread *s)
{
    unsigned wanted = worker_threads(x->helpers);
    if (wanted > s->n - 1) wanted = s->n - 1;
    for (unsigned i = 0; i < wanted; i++) {
        pthread_mutex_lock(&s->lock);
        s->refs++;
        pthread_mutex_unlock(&s->lock);
        if (!worker_submit(x->helpers, help, s)) unref(s);
    }
}

static void wait_all(struct spread *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->done < s->n)
        pthread_cond_wait(&s->all_done, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static struct exec_slice *slice_create(struct exec *x, unsigned i, unsigned n)
{
    struct exec_slice *s = mem_zalloc(sizeof *s);
    exec_init(&s->exec, x->db, x->hash, x->plan, &s->arena, x->budget, x->notes);
    s->exec.max_series = x->max_series;
    s->exec.timed = x->timed;
    s->exec.extra = x->extra;
    s->exec.slice = (struct exec_stretch){i, n};
    s->next = x->slices;
    x->slices = s;
    return s;
}

/* The first error, the others freed. */
static err outcome(struct spread *s)
{
    err e = NULL;
    for (unsigned i = 0; i < s->n; i++) {
        KEEP_FIRST(s->slices[i]->outcome);
        s->slices[i]->outcome = NULL;
    }
    return e;
}

err slices_run(struct exec *x, const struct plan_node *node, unsigned n,
               err (*fn)(void *arg, unsigned i, struct op *op), void *arg)
{
    struct spread *s = mem_zalloc(sizeof *s);
    *s = (struct spread){.node = node, .fn = fn, .arg = arg, .n = n, .refs = 1};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->all_done, NULL);
    s->slices = mem_alloc(n * sizeof(struct exec_slice *));
    for (unsigned i = 0; i < n; i++)
        s->slices[i] = slice_create(x, i, n);
    call_helpers(x, s);
    work(s);
    wait_all(s);
    for (unsigned i = 0; i < n; i++)
        x->series += s->slices[i]->exec.series;
    err e = outcome(s);
    unref(s);
    return e;
}

/* ---- what exec.c needs of them -------------------------------------------------------------------------------- */

const struct exec *exec_slice_at(const struct exec *x, const struct exec_slice **at)
{
    *at = *at ? (*at)->next : x->slices;
    return *at ? &(*at)->exec : NULL;
}

void exec_slices_close(struct exec *x)
{
    while (x->slices) {
        struct exec_slice *s = x->slices;
        x->slices = s->next;
        exec_close_ops(&s->exec);
        arena_deinit(&s->arena);
        mem_free(s);
    }
}
