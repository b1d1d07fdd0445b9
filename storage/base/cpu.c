/*
 * cpu.c: asks the processor (amd64) or the kernel (arm64) what there is. Nothing is kept: who chooses code
 * by it asks once and holds the answer. Any thread.
 */
#include "storage/base/cpu.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#if defined(__x86_64__)

uint32_t cpu_features(void)
{
    __builtin_cpu_init();
    uint32_t f = 0;
    f |= __builtin_cpu_supports("sse4.2") ? CPU_SSE42 : 0;
    f |= __builtin_cpu_supports("popcnt") ? CPU_POPCNT : 0;
    f |= __builtin_cpu_supports("pclmul") ? CPU_PCLMUL : 0;
    f |= __builtin_cpu_supports("avx2") ? CPU_AVX2 : 0;
    f |= __builtin_cpu_supports("bmi2") ? CPU_BMI2 : 0;
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return f | (avx512 ? CPU_AVX512 : 0);
}

#elif defined(__aarch64__)

/* Bits of AT_HWCAP, which the kernel's ABI fixes. */
enum { HWCAP_ASIMD_BIT = 1, HWCAP_CRC32_BIT = 7, HWCAP_ATOMICS_BIT = 8, HWCAP_SVE_BIT = 22 };

uint32_t cpu_features(void)
{
    unsigned long has = getauxval(AT_HWCAP);
    uint32_t f = 0;
    f |= has >> HWCAP_ASIMD_BIT & 1 ? CPU_NEON : 0;
    f |= has >> HWCAP_CRC32_BIT & 1 ? CPU_CRC32 : 0;
    f |= has >> HWCAP_ATOMICS_BIT & 1 ? CPU_LSE : 0;
    return f | (has >> HWCAP_SVE_BIT & 1 ? CPU_SVE : 0);
}

#else

uint32_t cpu_features(void)
{
    return 0;
}

#endif

void cpu_features_each(uint32_t features, void (*each)(void *context, const char *name), void *context)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {
        {CPU_SSE42, "sse4.2"},  {CPU_POPCNT, "popcnt"}, {CPU_PCLMUL, "pclmul"}, {CPU_AVX2, "avx2"}, {CPU_BMI2, "bmi2"},
        {CPU_AVX512, "avx512"}, {CPU_NEON, "neon"},     {CPU_CRC32, "crc32"},   {CPU_LSE, "lse"},   {CPU_SVE, "sve"},
    };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (features & names[i].bit) each(context, names[i].name);
}
