/*
 * testing.h: what all unit tests share: cmocka with its prerequisites, a printed and repeatable seed.
 */
#ifndef VARVE_TESTS_UNIT_TESTING_H
#define VARVE_TESTS_UNIT_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "storage/base/err.h"

/* The seed of a random test: VARVE_SEED if set, else the clock; printed, so a failure can be repeated. */
static inline uint64_t test_seed(void)
{
    const char *given = getenv("VARVE_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("VARVE_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* Fails the test with the error's text if there is one. */
static inline void assert_ok(err e)
{
    if (!e) return;
    char text[512];
    snprintf(text, sizeof text, "%s", err_message(e));
    err_free(e);
    fail_msg("unexpected error: %s", text);
}

/* Expects an error of this code and ends it. */
static inline void assert_err(err e, enum err_code code)
{
    enum err_code got = err_code(e);
    err_free(e);
    assert_int_equal(got, code);
}

#endif
