/*
 * assert.h: invariants that stay on in release builds.
 *
 * check() states what the programmer promises; a breach is a bug, so the process stops with place
 * and text. Input, disks and networks are never checked with it: those failures are `err` values.
 * slow_check() is for walks over whole structures and is compiled in only with -DVARVE_SLOW_CHECKS
 * (all test builds).
 */
#ifndef VARVE_STORAGE_BASE_ASSERT_H
#define VARVE_STORAGE_BASE_ASSERT_H

void check_failed(const char *file, int line, const char *text) __attribute__((noreturn, cold));

#define check(condition) (__builtin_expect(!!(condition), 1) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))

#ifdef VARVE_SLOW_CHECKS
#define slow_check(condition) check(condition)
#else
#define slow_check(condition) ((void)sizeof(!!(condition)))
#endif

#endif
