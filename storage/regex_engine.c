/*
 * regex_engine.c: a parsed pattern run by PCRE2 under limits.
 *
 * The tree is written out again in PCRE2's notation, in ASCII and with every construct spelled so that
 * it means what RE2 means by it (`$` is \z, \s has no vertical tab, classes are plain ranges). Nothing
 * of the user's text reaches PCRE2 unparsed.
 *
 * Bounded time: PCRE2 backtracks, so each match runs under MATCH_STEPS and, without JIT, a heap limit.
 * A match that would need more is REGEX_LIMIT.
 *
 * Threads: compiled code is read-only. What a match writes to (a runner: match data, context, stack) is
 * taken from a small pool of atomic slots; a thread that finds it empty makes its own, and puts it
 * back where there is room. JIT code runs on the thread's stack until a match needs more than the
 * 32 KiB it takes there; then the runner gets a stack of its own.
 */
#include "storage/regex_engine.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdatomic.h>

#include "storage/base/alloc.h"
#include "storage/base/buf.h"
#include "storage/labels.h"

#define MATCH_STEPS 200000       /* PCRE2's match limit: some milliseconds */
#define HEAP_KIB (8u << 10)      /* backtracking memory of the interpreter */
#define EMITTED_MAX (8u << 20)   /* bytes of the pattern as written out */
#define JIT_STACK_MAX (2u << 20) /* bytes, taken as needed */
#define POOL 8

struct runner {
    pcre2_match_data *data;
    pcre2_match_context *context;
    pcre2_jit_stack *stack; /* NULL until it is needed */
};

struct regex_engine {
    pcre2_general_context *general;
    pcre2_code *code;
    bool jit;
    _Atomic(struct runner *) pool[POOL];
};

/* ---- writing the tree out ----------------------------------------------------------------------- */

static void emit(const struct re_node *n, struct buf *out);

static bool is_plain(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void emit_literal(const struct re_node *n, struct buf *out)
{
    if (n->fold) buf_str(out, STR("(?i:"));
    for (size_t i = 0; i < n->text.n; i++) {
        uint8_t c = (uint8_t)n->text.p[i];
        if (c < 0x20)
            buf_printf(out, "\\x%02x", c);
        else if (c < 0x80 && !is_plain(c))
            buf_u8(out, '\\'), buf_u8(out, c);
        else
            buf_u8(out, c);
    }
    if (n->fold) buf_u8(out, ')');
}

static void emit_class(const struct re_node *n, struct buf *out)
{
    if (n->n_ranges == 0 && n->n_props == 0) { /* nothing, or anything */
        buf_str(out, n->negated ? STR("(?s:.)") : STR("(?!)"));
        return;
    }
    if (n->fold) buf_str(out, STR("(?i:"));
    buf_str(out, n->negated ? STR("[^") : STR("["));
    for (uint32_t i = 0; i < n->n_ranges; i++)
        buf_printf(out, "\\x{%x}-\\x{%x}", n->ranges[i].low, n->ranges[i].high);
    for (uint32_t i = 0; i < n->n_props; i++)
        buf_str(out, n->props[i]);
    buf_u8(out, ']');
    if (n->fold) buf_u8(out, ')');
}

static void emit_list(const struct re_node *n, char between, struct buf *out)
{
    buf_str(out, STR("(?:"));
    for (uint32_t i = 0; i < n->n_sub; i++) {
        if (i > 0 && between) buf_u8(out, (uint8_t)between);
        emit(n->sub[i], out);
    }
    buf_u8(out, ')');
}

static void emit_repeat(const struct re_node *n, struct buf *out)
{
    buf_str(out, STR("(?:"));
    emit(n->sub[0], out);
    if (n->max < 0)
        buf_printf(out, "){%d,}", n->min);
    else
        buf_printf(out, "){%d,%d}", n->min, n->max);
    if (n->lazy) buf_u8(out, '?');
}

static void emit(const struct re_node *n, struct buf *out)
{
    static const char *const fixed[] = {
        [RE_EMPTY] = "(?:)",           [RE_ANY] = "(?s:.)",    [RE_ANY_IN_LINE] = "[^\\n]",
        [RE_TEXT_START] = "\\A",       [RE_TEXT_END] = "\\z",  [RE_LINE_START] = "(?:\\A|(?<=\\n))",
        [RE_LINE_END] = "(?=\\n|\\z)", [RE_WORD_EDGE] = "\\b", [RE_NOT_WORD_EDGE] = "\\B",
    };
    switch (n->op) {
    case RE_LITERAL:
        emit_literal(n, out);
        return;
    case RE_CLASS:
        emit_class(n, out);
        return;
    case RE_CONCAT:
        emit_list(n, 0, out);
        return;
    case RE_ALT:
        emit_list(n, '|', out);
        return;
    case RE_REPEAT:
        emit_repeat(n, out);
        return;
    case RE_GROUP:
        buf_u8(out, '(');
        emit(n->sub[0], out);
        buf_u8(out, ')');
        return;
    default:
        buf_str(out, str_of(fixed[n->op]));
    }
}

/* ---- compiling ---------------------------------------------------------------------------------- */

static void *allocate(size_t bytes, void *unused)
{
    (void)unused;
    return mem_alloc(bytes);
}

static void release(void *p, void *unused)
{
    (void)unused;
    mem_free(p);
}

static err refused(int code, str pattern)
{
    enum { SHOWN_MAX = 80 };
    PCRE2_UCHAR text[160];
    if (code == PCRE2_ERROR_UNKNOWN_UNICODE_PROPERTY)
        return err_new(ERR_INVALID, "error parsing regexp: invalid character class range: unknown Unicode script");
    pcre2_get_error_message(code, text, sizeof text);
    return err_new(ERR_INVALID, "error parsing regexp: %s: `%.*s`", (const char *)text,
                   (int)(pattern.n < SHOWN_MAX ? pattern.n : SHOWN_MAX), pattern.p);
}

static err compile(struct regex_engine *g, const struct re_tree *tree)
{
    struct buf pattern = {.max = EMITTED_MAX};
    pcre2_compile_context *context = pcre2_compile_context_create(g->general);
    int code;
    PCRE2_SIZE offset;
    err e = NULL;
    buf_str(&pattern, STR("\\A(?:"));
    emit(tree->root, &pattern);
    buf_str(&pattern, STR(")\\z"));
    if (pattern.failed) {
        e = err_new(ERR_INVALID, "error parsing regexp: expression too large");
        goto out;
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, 8 * REGEX_DEPTH_MAX);
    g->code = pcre2_compile(pattern.data, pattern.n, PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_UTF_CHECK, &code,
                            &offset, context);
    if (g->code == NULL) {
        e = refused(code, buf_as_str(&pattern));
        goto out;
    }
    g->jit = pcre2_jit_compile(g->code, PCRE2_JIT_COMPLETE) == 0; /* else the interpreter does it */
out:
    pcre2_compile_context_free(context);
    buf_deinit(&pattern);
    return e;
}

err regex_engine_create(const struct re_tree *tree, struct regex_engine **out)
{
    struct regex_engine *g = mem_zalloc(sizeof *g);
    g->general = pcre2_general_context_create(allocate, release, NULL);
    err e = compile(g, tree);
    if (e) {
        regex_engine_destroy(g);
        return e;
    }
    *out = g;
    return NULL;
}

static void runner_destroy(struct runner *r)
{
    if (r == NULL) return;
    pcre2_jit_stack_free(r->stack);
    pcre2_match_context_free(r->context);
    pcre2_match_data_free(r->data);
    mem_free(r);
}

void regex_engine_destroy(struct regex_engine *g)
{
    if (g == NULL) return;
    for (size_t i = 0; i < POOL; i++)
        runner_destroy(atomic_load(&g->pool[i]));
    pcre2_code_free(g->code);
    pcre2_general_context_free(g->general);
    mem_free(g);
}

/* ---- matching ----------------------------------------------------------------------------------- */

static struct runner *runner_create(struct regex_engine *g)
{
    struct runner *r = mem_zalloc(sizeof *r);
    r->data = pcre2_match_data_create_from_pattern(g->code, g->general);
    r->context = pcre2_match_context_create(g->general);
    pcre2_set_match_limit(r->context, MATCH_STEPS);
    pcre2_set_heap_limit(r->context, HEAP_KIB);
    return r;
}

static struct runner *pool_take(struct regex_engine *g)
{
    for (size_t i = 0; i < POOL; i++) {
        if (atomic_load_explicit(&g->pool[i], memory_order_relaxed) == NULL) continue;
        struct runner *r = atomic_exchange_explicit(&g->pool[i], NULL, memory_order_acquire);
        if (r) return r;
    }
    return runner_create(g);
}

static void pool_put(struct regex_engine *g, struct runner *r)
{
    for (size_t i = 0; i < POOL; i++) {
        struct runner *empty = NULL;
        if (atomic_compare_exchange_strong_explicit(&g->pool[i], &empty, r, memory_order_release, memory_order_relaxed))
            return;
    }
    runner_destroy(r);
}

/* PCRE2's result: >= 0 for a match. */
static int run(struct regex_engine *g, struct runner *r, str subject)
{
    PCRE2_SPTR text = (PCRE2_SPTR)(subject.n ? subject.p : "");
    if (!g->jit) return pcre2_match(g->code, text, subject.n, 0, PCRE2_NO_UTF_CHECK, r->data, r->context);
    int result = pcre2_jit_match(g->code, text, subject.n, 0, 0, r->data, r->context);
    if (result != PCRE2_ERROR_JIT_STACKLIMIT || r->stack) return result;
    r->stack = pcre2_jit_stack_create(64 << 10, JIT_STACK_MAX, g->general);
    if (r->stack == NULL) return result;
    pcre2_jit_stack_assign(r->context, NULL, r->stack);
    return pcre2_jit_match(g->code, text, subject.n, 0, 0, r->data, r->context);
}

static void copy_groups(pcre2_match_data *data, size_t *groups, size_t n)
{
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(data);
    size_t set = pcre2_get_ovector_count(data);
    for (size_t i = 0; i < 2 * n; i++)
        groups[i] = i < 2 * set && offsets[i] != PCRE2_UNSET ? offsets[i] : SIZE_MAX;
}

enum regex_result regex_engine_match(struct regex_engine *g, str subject, size_t *groups, size_t n)
{
    /* Stored text is valid UTF-8; what is not can't have come from here and equals nothing. */
    if (!utf8_valid(subject)) return REGEX_NO;
    struct runner *runner = pool_take(g);
    int r = run(g, runner, subject);
    if (r >= 0 && groups) copy_groups(runner->data, groups, n);
    pool_put(g, runner);
    if (r >= 0) return REGEX_YES;
    return r == PCRE2_ERROR_NOMATCH ? REGEX_NO : REGEX_LIMIT;
}
