/* The queries of the conformance material beside the repository, for tests that walk all of them. */
#ifndef VARVE_TESTS_QUERY_CORPUS_H
#define VARVE_TESTS_QUERY_CORPUS_H

#include "tests/unit/testing.h"

#include <glob.h>

#include "storage/base/types.h"

#define CORPUS_ROOT "../shared/conformance/"
#define CORPUS_LINE 65536

/* may_fail: the reference refuses it, while parsing or when it runs. Returns false to stop. */
typedef void (*corpus_visit)(str query, bool may_fail, void *context);

static inline bool corpus_is_failure(const char *line)
{
    while (*line == ' ' || *line == '\t')
        line++;
    return strncmp(line, "expect fail", 11) == 0;
}

/* The query behind "eval instant at 5m ", "eval_fail range from 0 to 1m step 10s ", ...; NULL if line is none. */
static inline char *corpus_eval_query(char *line)
{
    if (strncmp(line, "eval", 4) != 0) return NULL;
    char *at = strchr(line, ' ');
    if (!at) return NULL;
    int words = strncmp(at, " instant at ", 12) == 0 ? 3 : strncmp(at, " range from ", 12) == 0 ? 7 : 0;
    for (int i = 0; words && i < words && at; i++)
        at = strchr(at + 1, ' ');
    return words && at ? at + 1 : NULL;
}

static inline void corpus_cut_newline(char *line)
{
    line[strcspn(line, "\r\n")] = '\0';
}

static inline void corpus_walk_script(FILE *f, corpus_visit visit, void *context)
{
    static char line[CORPUS_LINE], query[CORPUS_LINE];
    bool open = false, fails = false;
    while (fgets(line, sizeof line, f)) {
        corpus_cut_newline(line);
        if (open && corpus_is_failure(line)) fails = true;
        bool indented = line[0] == ' ' || line[0] == '\t';
        if (indented) continue;
        if (open) visit(str_of(query), fails, context);
        char *found = corpus_eval_query(line);
        open = found != NULL;
        fails = strncmp(line, "eval_fail", 9) == 0;
        if (found) strcpy(query, found);
    }
    if (open) visit(str_of(query), fails, context);
}

/* All eval statements of the promqltest scripts; the number of files, 0 when they are not there. */
static inline size_t corpus_walk_scripts(corpus_visit visit, void *context)
{
    glob_t files;
    if (glob(CORPUS_ROOT "promqltest/*.test", 0, NULL, &files) != 0) return 0;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *f = fopen(files.gl_pathv[i], "r");
        assert_non_null(f);
        corpus_walk_script(f, visit, context);
        fclose(f);
    }
    size_t n = files.gl_pathc;
    globfree(&files);
    return n;
}

/* "!flags query" or "query"; {END} and the like become a time. */
static inline void corpus_expand_times(const char *line, char *out)
{
    while (*line) {
        if (*line == '{' &&
            (strncmp(line, "{END}", 5) == 0 || strncmp(line, "{MID}", 5) == 0 || strncmp(line, "{START}", 7) == 0)) {
            strcpy(out, "1700000000");
            out += 10;
            line = strchr(line, '}') + 1;
        } else {
            *out++ = *line++;
        }
    }
    *out = '\0';
}

static inline size_t corpus_walk_deep(corpus_visit visit, void *context)
{
    FILE *f = fopen(CORPUS_ROOT "corpus/deep.txt", "r");
    if (!f) return 0;
    static char line[CORPUS_LINE], query[CORPUS_LINE];
    size_t n = 0;
    while (fgets(line, sizeof line, f)) {
        corpus_cut_newline(line);
        if (line[0] == '\0' || line[0] == '#' || line[0] == '[') continue;
        char *text = line, *space = strchr(line, ' ');
        bool fails = false;
        if (line[0] == '!' && space) {
            *space = '\0';
            fails = strstr(line, "error") != NULL;
            text = space + 1;
        }
        corpus_expand_times(text, query);
        visit(str_of(query), fails, context);
        n++;
    }
    fclose(f);
    return n;
}

#endif
