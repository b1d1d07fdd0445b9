/*
 * analyzer.h: included before every file that clang-tidy reads (make lint), never compiled.
 *
 * clang 14's analyzer does not take returns_nonnull as a fact, so it follows failing calls into the
 * code behind TRY, where nothing is set. Here the makers of errors say it in a way that it takes.
 */
#ifndef VARVE_TESTS_CHECK_ANALYZER_H
#define VARVE_TESTS_CHECK_ANALYZER_H

#include "storage/base/err.h"

static inline err err_made(err e)
{
    if (!e) __builtin_unreachable();
    return e;
}

#define err_new(...) err_made(err_new(__VA_ARGS__))
#define err_errno(...) err_made(err_errno(__VA_ARGS__))
#define err_corrupt(...) err_made(err_corrupt(__VA_ARGS__))

#endif
