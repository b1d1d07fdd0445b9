/*
 * manifest.c: the manifest and the identity file as bytes and back; the layouts are in manifest.h.
 *
 * Both are small, read and written whole, and replaced by rename, so a reader never sees half of one.
 * Nothing here keeps state; the database writes the manifest under its manifest_lock.
 */
#include "storage/manifest.h"

#include <stdio.h>

#include "storage/base/alloc.h"
#include "storage/whole_file.h"

static const char MAGIC[8] = "VRVMAN01";
static const char IDENTITY_MAGIC[8] = "VRVIDN01";
#define MANIFEST_BYTES_MAX (256u << 20)
#define IDENTITY_BYTES (8 + 4 + HASH_KEY_SIZE + 8)

/* ---- manifest --------------------------------------------------------------------------------------------------- */

static void encode_part(struct buf *out, const struct manifest_part *p)
{
    const struct part_meta *m = &p->meta;
    buf_varint(out, m->id);
    buf_zigzag(out, m->partition);
    buf_varint(out, m->level);
    buf_varint(out, m->seq_min);
    buf_varint(out, m->seq_max);
    buf_zigzag(out, m->t_min);
    buf_zigzag(out, m->t_max);
    buf_varint(out, m->samples);
    buf_varint(out, m->series);
    buf_varint(out, m->blocks);
    buf_varint(out, m->bytes);
    buf_varint(out, p->clean_seq);
}

static void decode_part(struct cursor *c, struct manifest_part *p)
{
    struct part_meta *m = &p->meta;
    m->id = cursor_varint(c);
    m->partition = (int32_t)cursor_zigzag(c);
    m->level = (uint32_t)cursor_varint(c);
    m->seq_min = cursor_varint(c);
    m->seq_max = cursor_varint(c);
    m->t_min = cursor_zigzag(c);
    m->t_max = cursor_zigzag(c);
    m->samples = cursor_varint(c);
    m->series = cursor_varint(c);
    m->blocks = cursor_varint(c);
    m->bytes = cursor_varint(c);
    p->clean_seq = cursor_varint(c);
}

err manifest_write(struct env *env, const char *dir, const struct manifest *m)
{
    struct buf b = {0};
    buf_put(&b, MAGIC, sizeof MAGIC);
    buf_u32(&b, MANIFEST_VERSION);
    buf_varint(&b, m->generation);
    buf_varint(&b, m->next_part);
    buf_varint(&b, m->seq);
    buf_varint(&b, m->wal_floor);
    buf_varint(&b, m->n_parts);
    for (size_t i = 0; i < m->n_parts; i++)
        encode_part(&b, &m->parts[i]);
    buf_varint(&b, m->n_tombstones);
    for (size_t i = 0; i < m->n_tombstones; i++)
        tombstone_encode(m->tombstones[i], &b);
    buf_u64(&b, checksum64(b.data, b.n));
    size_t copy = b.n;
    buf_reserve(&b, copy); /* else the bytes to be copied could move */
    buf_put(&b, b.data, copy);
    err e = whole_file_replace(env, dir, "MANIFEST", "MANIFEST.prev", &b);
    buf_deinit(&b);
    return err_wrap(e, "writing the manifest");
}

static err decode(const uint8_t *p, size_t bytes, struct manifest *m)
{
    if (bytes < sizeof MAGIC + 12 || memcmp(p, MAGIC, sizeof MAGIC) != 0) return err_corrupt("not a manifest");
    struct cursor sum = cursor_of(p + bytes - 8, 8);
    if (cursor_u64(&sum) != checksum64(p, bytes - 8)) return err_corrupt("checksum mismatch");
    struct cursor c = cursor_of(p + sizeof MAGIC, bytes - sizeof MAGIC - 8);
    uint32_t version = cursor_u32(&c);
    if (version != MANIFEST_VERSION)
        return err_new(ERR_UNSUPPORTED, "version %u, this server knows %d", version, MANIFEST_VERSION);
    m->generation = cursor_varint(&c);
    m->next_part = cursor_varint(&c);
    m->seq = cursor_varint(&c);
    m->wal_floor = (uint32_t)cursor_varint(&c);
    uint64_t n = cursor_varint(&c);
    if (n > cursor_left(&c)) return err_corrupt("malformed");
    m->parts = mem_zalloc(n * sizeof *m->parts + 1);
    m->n_parts = n;
    for (size_t i = 0; i < n; i++)
        decode_part(&c, &m->parts[i]);
    n = cursor_varint(&c);
    if (c.failed || n > cursor_left(&c)) return err_corrupt("malformed");
    m->tombstones = mem_zalloc(n * sizeof(struct tombstone *) + 1);
    for (; m->n_tombstones < n; m->n_tombstones++)
        TRY(tombstone_decode(&c, &m->tombstones[m->n_tombstones]));
    return c.failed || cursor_left(&c) > 0 ? err_corrupt("malformed") : NULL;
}

/* The first copy, or the second one if that is damaged. */
static err decode_copies(const struct buf *b, struct manifest *m)
{
    size_t copy = b->n / 2;
    err e = decode(b->data, copy, m);
    if (err_code(e) != ERR_CORRUPT) return e;
    manifest_deinit(m);
    err second = decode(b->data + copy, copy, m);
    if (err_code(second) == ERR_CORRUPT) {
        err_free(second);
        return e;
    }
    err_free(e);
    return second;
}

err manifest_read(struct env *env, const char *dir, const char *name, struct manifest *m)
{
    *m = (struct manifest){0};
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    struct buf b = {0};
    err e = whole_file_read(env, path, MANIFEST_BYTES_MAX, &b);
    if (e == NULL) e = err_wrap(decode_copies(&b, m), "%s", path);
    buf_deinit(&b);
    return e;
}

err manifest_verify(struct env *env, const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/MANIFEST", dir);
    struct buf b = {0};
    err e = whole_file_read(env, path, MANIFEST_BYTES_MAX, &b);
    if (e == NULL && (b.n % 2 != 0 || memcmp(b.data, b.data + b.n / 2, b.n / 2) != 0))
        e = err_corrupt("its two copies differ");
    buf_deinit(&b);
    return e;
}

void manifest_deinit(struct manifest *m)
{
    for (size_t i = 0; i < m->n_tombstones; i++)
        tombstone_unref(m->tombstones[i]);
    mem_free(m->tombstones);
    mem_free(m->parts);
    *m = (struct manifest){0};
}

void manifest_print(const struct manifest *m, struct buf *out)
{
    buf_printf(out, "manifest generation=%llu next_part=%llu seq=%llu wal_floor=%u parts=%zu deletes=%zu\n",
               (unsigned long long)m->generation, (unsigned long long)m->next_part, (unsigned long long)m->seq,
               m->wal_floor, m->n_parts, m->n_tombstones);
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct part_meta *p = &m->parts[i].meta;
        buf_printf(out,
                   "part %llu partition=%d level=%u seq=%llu..%llu t=%lld..%lld samples=%llu series=%llu blocks=%llu "
                   "bytes=%llu clean_seq=%llu\n",
                   (unsigned long long)p->id, p->partition, p->level, (unsigned long long)p->seq_min,
                   (unsigned long long)p->seq_max, (long long)p->t_min, (long long)p->t_max,
                   (unsigned long long)p->samples, (unsigned long long)p->series, (unsigned long long)p->blocks,
                   (unsigned long long)p->bytes, (unsigned long long)m->parts[i].clean_seq);
    }
    for (size_t i = 0; i < m->n_tombstones; i++) {
        tombstone_print(m->tombstones[i], out);
        buf_str(out, STR("\n"));
    }
}

/* ---- identity --------------------------------------------------------------------------------------------------- */

static err identity_parse(const struct buf *b, struct hash_key *key)
{
    if (b->n != IDENTITY_BYTES || memcmp(b->data, IDENTITY_MAGIC, sizeof IDENTITY_MAGIC) != 0)
        return err_corrupt("not an identity file");
    struct cursor sum = cursor_of(b->data + b->n - 8, 8);
    if (cursor_u64(&sum) != checksum64(b->data, b->n - 8)) return err_corrupt("checksum mismatch");
    memcpy(key->secret, b->data + 12, HASH_KEY_SIZE);
    return NULL;
}

err identity_open(struct env *env, const char *dir, bool create, struct hash_key *key)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/IDENTITY", dir);
    struct buf b = {0};
    err e = whole_file_read(env, path, IDENTITY_BYTES * 2, &b);
    if (e == NULL) {
        e = err_wrap(identity_parse(&b, key), "%s", path);
    } else if (err_code(e) == ERR_NOT_FOUND && create) {
        err_free(e);
        env->ops->random(env, key->secret, HASH_KEY_SIZE);
        buf_clear(&b);
        buf_put(&b, IDENTITY_MAGIC, sizeof IDENTITY_MAGIC);
        buf_u32(&b, MANIFEST_VERSION);
        buf_put(&b, key->secret, HASH_KEY_SIZE);
        buf_u64(&b, checksum64(b.data, b.n));
        e = whole_file_replace(env, dir, "IDENTITY", NULL, &b);
    }
    buf_deinit(&b);
    return e;
}
