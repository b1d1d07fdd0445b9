/*
 * part_sink.c: the file behind a part writer: compresses frames, appends them in large pieces, and
 * remembers where each went. Errors of the file are final: the writer gives up and unlinks. One thread.
 */
#include "storage/base/alloc.h"
#include "storage/part_format.h"

#define ZSTD_LEVEL 1  /* level 3 gains under 1 % on column planes */
#define CHECKSUM_AT 8 /* in a zframe */

err part_sink_open(struct part_sink *s, struct env *env, const char *path)
{
    *s = (struct part_sink){.env = env};
    TRY(env->ops->file_open(env, path, ENV_CREATE, &s->file));
    s->z = zctx_create();
    return NULL;
}

void part_sink_close(struct part_sink *s)
{
    if (s->file != NULL) s->env->ops->file_close(s->file);
    if (s->z != NULL) zctx_destroy(s->z);
    buf_deinit(&s->pending);
    for (size_t kind = 0; kind < PART_FRAME_KINDS; kind++)
        mem_free(s->frames[kind].v);
    *s = (struct part_sink){0};
}

err part_sink_flush(struct part_sink *s)
{
    TRY(buf_status(&s->pending, "part file"));
    if (s->pending.n == 0) return NULL;
    TRY(s->env->ops->file_append(s->file, s->pending.data, s->pending.n));
    s->at += s->pending.n;
    buf_clear(&s->pending);
    return NULL;
}

err part_sink_frame(struct part_sink *s, enum part_frame_kind kind, const struct buf *raw)
{
    struct part_frames *frames = &s->frames[kind];
    size_t start = s->pending.n;
    TRY(buf_status(raw, "part frame"));
    if (raw->n > LIMIT_FRAME_RAW) return err_new(ERR_TOO_LARGE, "part frame of %zu bytes", raw->n);
    zframe_put(s->z, raw->data, raw->n, ZSTD_LEVEL, &s->pending);
    TRY(buf_status(&s->pending, "part frame"));

    struct cursor c = cursor_of(s->pending.data + start + CHECKSUM_AT, sizeof(uint32_t));
    frames->v = mem_grow(frames->v, &frames->cap, frames->n + 1, sizeof *frames->v);
    frames->v[frames->n++] = (struct part_frame){s->at + start, (uint32_t)(s->pending.n - start), cursor_u32(&c)};
    return s->pending.n >= PART_FLUSH_BYTES ? part_sink_flush(s) : NULL;
}

err part_sink_section(struct part_sink *s, const struct buf *raw, struct part_section *out)
{
    size_t start = s->pending.n;
    TRY(buf_status(raw, "part index"));
    if (raw->n > PART_SECTION_RAW_MAX - ZFRAME_HEADER) return err_new(ERR_TOO_LARGE, "part index of %zu bytes", raw->n);
    zframe_put(s->z, raw->data, raw->n, ZSTD_LEVEL, &s->pending);
    TRY(buf_status(&s->pending, "part index"));
    size_t size = s->pending.n - start;
    *out = (struct part_section){s->at + start, size, checksum64(s->pending.data + start, size)};
    return NULL;
}
