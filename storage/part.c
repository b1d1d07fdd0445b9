/*
 * part.c: a part file opened for reading, shared by many threads.
 *
 * A part holds a file handle, its footer, and from the first use on its indexes; all are immutable once
 * there. References are counted; the last one closes the file, drops its frames from the cache, and
 * unlinks the file if the manifest let go of it. `damaged` only ever goes from false to true.
 */
#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/part_format.h"

static err read_footer(struct part *p)
{
    uint8_t end[PART_FOOTER_SIZE + PART_TAIL_SIZE];
    uint64_t size = 0;
    TRY(p->env->ops->file_size(p->file, &size));
    if (size < sizeof end) return err_corrupt("file of %llu bytes is too short for a part", (unsigned long long)size);
    TRY(p->env->ops->file_read(p->file, end, sizeof end, size - sizeof end));
    return part_footer_decode(end, sizeof end, size, &p->footer);
}

err part_open(struct env *env, const char *path, const struct hash_key *key, struct fcache *cache, struct part **out)
{
    struct part *p = mem_zalloc(sizeof *p);
    err e = NULL;
    p->env = env;
    p->cache = cache;
    p->key = *key;
    p->path = mem_dup_str(str_of(path));
    atomic_init(&p->refs, 1);
    check(pthread_mutex_init(&p->lock, NULL) == 0);
    TRY_OUT(env->ops->file_open(env, path, ENV_READ, &p->file));
    TRY_OUT(read_footer(p));
    *out = p;
    return NULL;
out:
    e = err_wrap(e, "part %s", path);
    part_unref(p);
    return e;
}

void part_will_read(struct part *p, uint64_t bytes)
{
    uint64_t size = p->footer.meta.bytes, n = bytes < size ? bytes : size;
    p->env->ops->file_will_read(p->file, size - n, n);
}

struct part *part_ref(struct part *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void part_unref(struct part *p)
{
    if (p == NULL || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1) return;
    if (p->file != NULL) {
        fcache_forget(p->cache, p->footer.meta.id);
        p->env->ops->file_close(p->file);
    }
    /* If this fails the file stays as an orphan, which the next start of the database removes. */
    if (atomic_load(&p->delete_on_unref)) err_free(p->env->ops->unlink(p->env, p->path));
    part_index_destroy(atomic_load(&p->index));
    pthread_mutex_destroy(&p->lock);
    mem_free(p->path);
    mem_free(p);
}

void part_delete_on_unref(struct part *p)
{
    atomic_store(&p->delete_on_unref, true);
}

const struct part_meta *part_meta(const struct part *p)
{
    return &p->footer.meta;
}

const char *part_path(const struct part *p)
{
    return p->path;
}

bool part_damaged(const struct part *p)
{
    return atomic_load_explicit(&p->damaged, memory_order_relaxed);
}

uint32_t part_symbol_count(const struct part *p)
{
    return p->footer.n_symbols;
}

size_t part_resident_bytes(const struct part *p)
{
    const struct part_index *ix = atomic_load_explicit(&p->index, memory_order_acquire);
    return sizeof *p + (ix != NULL ? ix->bytes : 0);
}

err part_load_index(struct part *p, const struct part_index **out)
{
    struct part_index *ix = atomic_load_explicit(&p->index, memory_order_acquire);
    if (ix == NULL) {
        err e = NULL;
        pthread_mutex_lock(&p->lock);
        ix = atomic_load_explicit(&p->index, memory_order_relaxed);
        if (ix == NULL) {
            e = part_index_load(p->env, p->file, &p->footer, &ix);
            if (e == NULL) atomic_store_explicit(&p->index, ix, memory_order_release);
        }
        pthread_mutex_unlock(&p->lock);
        if (e != NULL) {
            if (err_code(e) == ERR_CORRUPT) atomic_store(&p->damaged, true);
            return err_wrap(e, "part %s", p->path);
        }
    }
    *out = ix;
    return NULL;
}

err part_blame(struct part *p, uint64_t offset, err e)
{
    if (err_code(e) == ERR_CORRUPT) atomic_store(&p->damaged, true);
    return err_wrap(e, "part %s: frame at offset %llu", p->path, (unsigned long long)offset);
}

err part_corrupt(struct part *p, uint64_t offset, const char *what)
{
    return part_blame(p, offset, err_corrupt("%s", what));
}

/* The frame at its place in the file, whole and the one that was written there. */
static err load_frame(struct part *p, struct buf *disk, const struct part_frame *f, size_t *raw)
{
    size_t size;
    buf_clear(disk);
    uint8_t *bytes = buf_reserve(disk, f->disk);
    check(bytes != NULL);
    TRY(p->env->ops->file_read(p->file, bytes, f->disk, f->offset));
    TRY(zframe_sizes(bytes, LIMIT_FRAME_RAW, &size, raw));
    struct cursor sum = cursor_of(bytes + 8, 4);
    if (size != f->disk || cursor_u32(&sum) != f->check) return err_corrupt("not the frame that was written here");
    return NULL;
}

err part_read_frame(struct part *p, struct zctx *z, struct buf *disk, const struct part_frame *f, uint8_t **data,
                    size_t *n)
{
    size_t raw = 0;
    err e = f->disk > LIMIT_FRAME_RAW + ZFRAME_HEADER ? err_corrupt("frame of %u bytes", f->disk)
                                                      : load_frame(p, disk, f, &raw);
    if (e != NULL) return part_blame(p, f->offset, e);
    uint8_t *out = mem_alloc(raw + 1); /* never of size zero */
    e = zframe_get(z, disk->data, f->disk, out, raw);
    if (e != NULL) {
        mem_free(out);
        return part_blame(p, f->offset, e);
    }
    *data = out;
    *n = raw;
    return NULL;
}
