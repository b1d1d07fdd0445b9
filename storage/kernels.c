/*
 * kernels.c: the choice of a variant, and the calls through it.
 *
 * The choice is the one variable of this room that is not handed around: written once at start, before
 * there are threads, and only read after that.
 */
#include "storage/kernels.h"

#include "storage/base/assert.h"
#include "storage/base/buf.h"
#include "storage/base/cpu.h"
#include "storage/kernels_choice.h"
#include "storage/kernels_table.h"

static const double powers_of_ten[KERNELS_EXPONENT_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* From the plainest to the best. */
static const struct {
    const struct kernels *kernels;
    uint32_t needs;
} variants[] = {
    {&kernels_portable, 0},
#if defined(__x86_64__)
    {&kernels_sse42, CPU_SSE42},
    {&kernels_avx2, CPU_AVX2},
    {&kernels_avx512, CPU_AVX512},
#elif defined(__aarch64__)
    {&kernels_neon, CPU_NEON},
#endif
};

static const struct kernels *chosen = &kernels_portable;

/* ---- the choice */

static bool can_run(size_t variant)
{
    return (cpu_features() & variants[variant].needs) == variants[variant].needs;
}

static void append_name(void *context, const char *name)
{
    buf_printf(context, " %s", name);
}

static err refuse(const char *name)
{
    struct buf names = {0};
    kernels_each(append_name, &names);
    buf_u8(&names, 0);
    err e =
        err_new(ERR_INVALID, "no variant \"%s\" on this processor, which can run:%s", name, (const char *)names.data);
    buf_deinit(&names);
    return e;
}

err kernels_choose(const char *name)
{
    for (size_t i = ARRAY_LEN(variants); i-- > 0;) {
        bool wanted = name == NULL || strcmp(name, variants[i].kernels->name) == 0;
        if (!wanted || !can_run(i)) continue;
        chosen = variants[i].kernels;
        return NULL;
    }
    return refuse(name);
}

const char *kernels_chosen(void)
{
    return chosen->name;
}

void kernels_each(void (*each)(void *context, const char *name), void *context)
{
    for (size_t i = 0; i < ARRAY_LEN(variants); i++)
        if (can_run(i)) each(context, variants[i].kernels->name);
}

/* ---- the calls */

void kernels_split(const uint64_t *u, size_t n, unsigned width, uint8_t *planes)
{
    check(width <= 8);
    if (width > 0) chosen->split(u, n, width, planes);
}

void kernels_join(const uint8_t *planes, size_t n, unsigned width, uint64_t *u)
{
    check(width <= 8);
    if (width > 0)
        chosen->join(planes, n, width, u);
    else
        memset(u, 0, n * sizeof *u);
}

void kernels_unscale(const int64_t *k, size_t n, unsigned exponent, double *v)
{
    check(exponent <= KERNELS_EXPONENT_MAX);
    chosen->unscale(k, n, powers_of_ten[exponent], v);
}

void kernels_add_ulps(double *v, const int64_t *r, size_t n)
{
    chosen->add_ulps(v, r, n);
}

size_t kernels_scale(const double *v, size_t n, unsigned exponent, int64_t *k, int64_t *r, uint8_t *bad,
                     bool *any_residual)
{
    check(exponent <= KERNELS_EXPONENT_MAX);
    return chosen->scale(v, n, powers_of_ten[exponent], k, r, bad, any_residual);
}

void kernels_order(const double *v, size_t n, int64_t *k)
{
    chosen->flip(v, n, k);
}

void kernels_unorder(const int64_t *k, size_t n, double *v)
{
    chosen->flip(k, n, v);
}
