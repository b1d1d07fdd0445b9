/*
 * version.c: the build as it knows itself. The one unit that includes the headers of all libraries, for
 * their versions: of those linked dynamically it is the library that is loaded which answers, not the
 * header, where the library can be asked. VARVE_FLAVOUR and VARVE_LIBC come from the Makefile. Any thread.
 */
#include "server/version.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <http_parser.h>
#include <jemalloc/jemalloc.h>
#include <pcre2.h>
#include <roaring/roaring.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

#include "storage/base/cpu.h"
#include "storage/base/json.h"
#include "storage/kernels_choice.h"

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#if defined(__x86_64__)
#define ARCH "amd64"
#elif defined(__aarch64__)
#define ARCH "arm64"
#else
#define ARCH "other"
#endif

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

enum { FACTS_MAX = 8, FACT_SIZE = 48 };

struct fact {
    const char *name;
    char value[FACT_SIZE];
};

static const char *flavour(void)
{
    if (strcmp(VARVE_FLAVOUR, "rel") == 0) return "linked";
    return strncmp(VARVE_FLAVOUR, "static", 6) == 0 ? "static" : VARVE_FLAVOUR;
}

static void libc_name(char *out, size_t n)
{
#if defined(__GLIBC__)
    snprintf(out, n, "glibc %s", gnu_get_libc_version());
#elif defined(VARVE_LIBC)
    snprintf(out, n, "%s", VARVE_LIBC);
#else
    snprintf(out, n, "unknown");
#endif
}

/* What comes before the first character of `stop`. */
static void fact_until(struct fact *f, const char *value, const char *stop)
{
    snprintf(f->value, sizeof f->value, "%.*s", (int)strcspn(value, stop), value);
}

static void fact_number(struct fact *f, unsigned long major, unsigned long minor, unsigned long patch)
{
    snprintf(f->value, sizeof f->value, "%lu.%lu.%lu", major, minor, patch);
}

static size_t libraries(struct fact out[FACTS_MAX])
{
    size_t n = 0;
    out[n].name = "jemalloc";
    fact_until(&out[n++], JEMALLOC_VERSION, "-");
    out[n].name = "zstd";
    fact_until(&out[n++], ZSTD_versionString(), "");
    out[n].name = "zlib";
    fact_until(&out[n++], zlibVersion(), "");
    out[n].name = "libuv";
    fact_until(&out[n++], uv_version_string(), "");
    out[n].name = "http-parser";
    unsigned long parser = http_parser_version();
    fact_number(&out[n++], parser >> 16 & 255, parser >> 8 & 255, parser & 255);
    out[n].name = "pcre2";
    char text[FACT_SIZE] = "";
    if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) <= (int)sizeof text) pcre2_config(PCRE2_CONFIG_VERSION, text);
    fact_until(&out[n++], text, " ");
    out[n].name = "roaring";
    fact_number(&out[n++], ROARING_VERSION_MAJOR, ROARING_VERSION_MINOR, ROARING_VERSION_REVISION);
    out[n].name = "xxhash";
    fact_number(&out[n++], XXH_VERSION_MAJOR, XXH_VERSION_MINOR, XXH_VERSION_RELEASE);
    return n;
}

static void each_word(void *context, const char *name)
{
    buf_printf(context, " %s", name);
}

void version_print(struct buf *out)
{
    char libc[FACT_SIZE];
    libc_name(libc, sizeof libc);
    struct fact facts[FACTS_MAX];
    size_t n = libraries(facts);
    buf_printf(out, "varve %s (%s)\n", VARVE_VERSION, VARVE_REVISION);
    buf_printf(out, "  flavour    %s\n  arch       %s\n  compiler   %s\n  libc       %s\n  libraries ", flavour(), ARCH,
               COMPILER, libc);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s %s %s", i > 0 ? "," : "", facts[i].name, facts[i].value);
    buf_printf(out, "\n  cpu       ");
    cpu_features_each(cpu_features(), each_word, out);
    buf_printf(out, "\n  kernels    %s, of", kernels_chosen());
    kernels_each(each_word, out);
    buf_printf(out, "\n");
}

static void each_json(void *context, const char *name)
{
    json_cstr(context, name);
}

static void put_member(struct json *j, const char *key, const char *value)
{
    json_key(j, key);
    json_cstr(j, value);
}

void version_print_json(struct buf *out)
{
    char libc[FACT_SIZE];
    libc_name(libc, sizeof libc);
    struct fact facts[FACTS_MAX];
    size_t n = libraries(facts);
    struct json j;
    json_init(&j, out);
    json_object(&j);
    put_member(&j, "version", VARVE_VERSION);
    put_member(&j, "revision", VARVE_REVISION);
    put_member(&j, "flavour", flavour());
    put_member(&j, "arch", ARCH);
    put_member(&j, "compiler", COMPILER);
    put_member(&j, "libc", libc);
    json_key(&j, "libraries");
    json_object(&j);
    for (size_t i = 0; i < n; i++)
        put_member(&j, facts[i].name, facts[i].value);
    json_object_end(&j);
    json_key(&j, "cpu");
    json_array(&j);
    cpu_features_each(cpu_features(), each_json, &j);
    json_array_end(&j);
    put_member(&j, "kernels", kernels_chosen());
    json_key(&j, "kernelsThere");
    json_array(&j);
    kernels_each(each_json, &j);
    json_array_end(&j);
    json_object_end(&j);
    buf_str(out, STR("\n"));
}
