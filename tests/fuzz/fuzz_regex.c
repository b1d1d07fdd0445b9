/*
 * fuzz_regex.c: pattern and subject, split at the first newline: compiling, matching and replacing must
 * end, in bounds, and agree with each other.
 */
#include <stdlib.h>

#include "storage/labels.h"
#include "storage/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
    size_t n = newline ? (size_t)(newline - data) : size;
    str pattern = {(const char *)data, n};
    str subject = newline ? (str){(const char *)newline + 1, size - n - 1} : STR("");
    struct regex *re;
    err e = regex_create(pattern, &re);
    if (e) {
        if (err_code(e) != ERR_INVALID) abort();
        err_free(e);
        return 0;
    }
    enum regex_result r = regex_match(re, subject);
    if (r == REGEX_YES && !str_starts_with(subject, regex_prefix(re))) abort();
    size_t literals;
    const str *literal = regex_literals(re, &literals);
    for (size_t i = 0; i < literals && i < 20; i++)
        if (regex_match(re, literal[i]) != REGEX_YES) abort();
    struct arena a = {0};
    bool matched;
    str out;
    e = regex_replace(re, subject, STR("$1${2}$x$$"), &a, &matched, &out);
    /* Subjects that are not UTF-8 don't occur; where they do, no engine and no glob owe each other anything. */
    if (e == NULL && r != REGEX_LIMIT && utf8_valid(subject) && matched != (r == REGEX_YES)) abort();
    err_free(e);
    arena_deinit(&a);
    regex_destroy(re);
    return 0;
}
