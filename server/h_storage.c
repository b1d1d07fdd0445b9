/*
 * h_storage.c: /api/v1/status/storage: what the database keeps where: log, head, parts by month, disk.
 *
 * Varve's own call; the status page draws it. On a query worker: a large database has many parts.
 */
#include "server/handlers.h"

static void put_u64(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_u64(j, v);
}

/* minTime and maxTime in ms; null when there are no samples. */
static void put_times(struct json *j, bool any, int64_t t_min, int64_t t_max)
{
    json_key(j, "minTime");
    if (any)
        json_i64(j, t_min);
    else
        json_null(j);
    json_key(j, "maxTime");
    if (any)
        json_i64(j, t_max);
    else
        json_null(j);
}

static void put_disk(struct json *j, const struct storage_disk *d, const struct storage_stats *st)
{
    json_key(j, "readOnly");
    json_bool(j, st->read_only);
    json_key(j, "disk");
    json_object(j);
    put_u64(j, "usedBytes", st->part_bytes + d->wal_bytes);
    put_u64(j, "freeBytes", d->free_bytes);
    put_u64(j, "totalBytes", d->total_bytes);
    json_object_end(j);
    json_key(j, "wal");
    json_object(j);
    put_u64(j, "segments", d->wal_segments);
    put_u64(j, "bytes", d->wal_bytes);
    json_object_end(j);
    json_key(j, "merges");
    json_object(j);
    put_u64(j, "running", d->merges_running);
    put_u64(j, "waiting", d->merges_waiting);
    put_u64(j, "total", d->merges);
    json_object_end(j);
}

static void put_head(struct json *j, const struct storage_stats *st)
{
    json_key(j, "head");
    json_object(j);
    put_u64(j, "series", st->head_series);
    put_u64(j, "samples", st->head_samples);
    put_u64(j, "bytes", st->head_bytes);
    put_times(j, st->head_samples > 0, st->head_t_min, st->head_t_max);
    json_object_end(j);
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

/* Parts come by partition: a partition is written behind its parts, when its times are known. */
struct parts_list {
    struct json *j;
    bool open;
    struct storage_part total; /* of the partition that is open */
};

static void end_partition(struct parts_list *l)
{
    if (!l->open) return;
    struct json *j = l->j;
    json_array_end(j);
    put_u64(j, "samples", l->total.samples);
    put_u64(j, "bytes", l->total.bytes);
    put_times(j, true, l->total.t_min, l->total.t_max);
    json_object_end(j);
}

static void begin_partition(struct parts_list *l, const struct storage_part *p)
{
    end_partition(l);
    l->open = true;
    l->total = (struct storage_part){.partition = p->partition, .t_min = p->t_min, .t_max = p->t_max};
    json_object(l->j);
    json_key(l->j, "name");
    json_cstr(l->j, p->partition_name);
    json_key(l->j, "parts");
    json_array(l->j);
}

static void put_part(void *arg, const struct storage_part *p)
{
    struct parts_list *l = arg;
    struct json *j = l->j;
    if (!l->open || p->partition != l->total.partition) begin_partition(l, p);
    l->total.samples += p->samples;
    l->total.bytes += p->bytes;
    if (p->t_min < l->total.t_min) l->total.t_min = p->t_min;
    if (p->t_max > l->total.t_max) l->total.t_max = p->t_max;
    json_object(j);
    json_key(j, "name");
    json_cstr(j, p->name);
    put_u64(j, "level", p->level);
    put_u64(j, "series", p->series);
    put_u64(j, "samples", p->samples);
    put_u64(j, "blocks", p->blocks);
    put_u64(j, "bytes", p->bytes);
    put_u64(j, "indexBytesInMemory", p->resident_bytes);
    put_times(j, true, p->t_min, p->t_max);
    json_key(j, "damaged");
    json_bool(j, p->damaged);
    json_object_end(j);
}

void h_storage_status(struct server *s, struct exchange *x)
{
    struct storage_disk disk;
    struct storage_stats st;
    err_free(storage_disk(s->db, &disk)); /* a file system that hides its free space: 0 */
    storage_stats(s->db, &st);
    answer_data_begin(&x->out);
    struct json j;
    json_init(&j, &x->out.body);
    json_object(&j);
    json_key(&j, "path");
    json_cstr(&j, disk.path);
    json_key(&j, "retentionMs"); /* 0: for ever */
    json_i64(&j, s->config->retention_ms);
    put_disk(&j, &disk, &st);
    put_head(&j, &st);
    json_key(&j, "partitions");
    json_array(&j);
    struct parts_list l = {.j = &j};
    storage_parts_each(s->db, put_part, &l);
    end_partition(&l);
    json_array_end(&j);
    json_object_end(&j);
    answer_data_end(&x->out, NULL);
}
