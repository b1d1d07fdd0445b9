/*
 * alloc.c: the only unit that talks to the allocator: jemalloc, or the libc's when a sanitizer has
 * taken malloc over.
 *
 * jemalloc is linked in place of the libc's malloc for the whole process, so libraries (zstd, libuv)
 * use it too and mem_in_use counts them. It is set up for a small server that has bursts: two arenas
 * a process rather than four a core (an arena keeps its own dirty pages and metadata), dirty pages
 * back to the system after two seconds, and a background thread to do that while the server idles.
 * Any thread.
 */
#include "storage/base/alloc.h"

#include "storage/base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOC_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define ALLOC_SANITIZER 1
#endif
#endif

#ifdef ALLOC_SANITIZER

/* gcc ships this function of the sanitizers' run-time without its header */
extern size_t __sanitizer_get_current_allocated_bytes(void);

size_t mem_in_use(void)
{
    return __sanitizer_get_current_allocated_bytes();
}

struct mem_pages mem_pages(void)
{
    return (struct mem_pages){0};
}

void mem_release(void)
{
}

#else

#include <jemalloc/jemalloc.h>

/* Read by jemalloc before main; the name is its contract. */
extern const char *malloc_conf;
const char *malloc_conf = "narenas:2,dirty_decay_ms:2000,muzzy_decay_ms:0,background_thread:true,"
                          "max_background_threads:1,lg_tcache_max:14,metadata_thp:disabled,thp:never";

static size_t statistic(const char *name)
{
    size_t bytes = 0, size = sizeof bytes;
    return mallctl(name, &bytes, &size, NULL, 0) == 0 ? bytes : 0;
}

size_t mem_in_use(void)
{
    uint64_t epoch = 1; /* statistics are a snapshot that writing the epoch renews */
    if (mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) != 0) return 0;
    return statistic("stats.allocated");
}

struct mem_pages mem_pages(void)
{
    return (struct mem_pages){statistic("stats.active"), statistic("stats.resident"), statistic("stats.retained")};
}

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)

void mem_release(void)
{
    /* only this thread's cache can be flushed from here; the others' are small by lg_tcache_max */
    (void)mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
    (void)mallctl("arena." STRINGIFY(MALLCTL_ARENAS_ALL) ".purge", NULL, NULL, NULL, 0);
}

#endif

static void __attribute__((noreturn, cold)) out_of_memory(size_t bytes)
{
    char message[96];
    int n = snprintf(message, sizeof message, "varve: out of memory (%zu bytes wanted)\n", bytes);
    ssize_t written = write(STDERR_FILENO, message, (size_t)n);
    (void)written;
    abort();
}

void *mem_try_alloc(size_t bytes)
{
    return malloc(bytes ? bytes : 1);
}

void *mem_alloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (__builtin_expect(!p, 0)) out_of_memory(bytes);
    return p;
}

void *mem_zalloc(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (__builtin_expect(!p, 0)) out_of_memory(bytes);
    return p;
}

void *mem_realloc(void *p, size_t bytes)
{
    void *q = realloc(p, bytes ? bytes : 1);
    if (__builtin_expect(!q, 0)) out_of_memory(bytes);
    return q;
}

void *mem_dup(const void *p, size_t bytes)
{
    void *q = mem_alloc(bytes);
    if (bytes) memcpy(q, p, bytes);
    return q;
}

char *mem_dup_str(str s)
{
    char *z = mem_alloc(s.n + 1);
    if (s.n) memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return z;
}

void mem_free(void *p)
{
    free(p);
}

void *mem_grow(void *p, size_t *capacity, size_t need, size_t size)
{
    check(size > 0);
    if (need <= *capacity && p) return p;
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < need && wanted <= SIZE_MAX / 2)
        wanted *= 2;
    size_t bytes;
    if (wanted < need || __builtin_mul_overflow(wanted, size, &bytes)) out_of_memory(SIZE_MAX);
    p = mem_realloc(p, bytes);
    *capacity = wanted;
    return p;
}

void *mem_map(size_t bytes)
{
    check(bytes > 0 && bytes % MEM_MAP_ALIGN == 0);
    size_t mapped = bytes + MEM_MAP_ALIGN;
    char *p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) out_of_memory(bytes);
    size_t before = (MEM_MAP_ALIGN - (uintptr_t)p % MEM_MAP_ALIGN) % MEM_MAP_ALIGN;
    char *at = p + before;
    if (before > 0) munmap(p, before);
    munmap(at + bytes, MEM_MAP_ALIGN - before);
    (void)madvise(at, bytes, MADV_HUGEPAGE); /* a wish: it works without */
    return at;
}

void mem_unmap(void *p, size_t bytes)
{
    if (p != NULL) munmap(p, bytes);
}
