/*
 * fuzz_ingest.h: what the targets of the ingest decoders share: one database in a temp folder per
 * process, and the promises that hold for any request whatever.
 */
#ifndef VARVE_TESTS_FUZZ_INGEST_H
#define VARVE_TESTS_FUZZ_INGEST_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ingest/ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_ingest {
    char path[64];
    struct db *db;
    struct ingest *in;
    struct ingest_scratch *scratch;
    unsigned inputs;
};

static struct fuzz_ingest fuzz_state; /* the process's */

static void fuzz_ingest_close(struct fuzz_ingest *f)
{
    char command[128];
    if (f->db == NULL) return;
    ingest_scratch_destroy(f->scratch);
    ingest_destroy(f->in);
    storage_abandon(f->db);
    snprintf(command, sizeof command, "rm -rf %s", f->path);
    if (system(command) != 0) abort();
    f->db = NULL;
}

/* The folder goes when the run ends by itself; a crash keeps it. */
__attribute__((destructor)) static void fuzz_ingest_end(void)
{
    fuzz_ingest_close(&fuzz_state);
}

/* Opens, or opens anew when much has been stored: memory must not grow with the length of the run. */
static void fuzz_ingest_open(struct fuzz_ingest *f)
{
    enum { INPUTS_MAX = 20000 };
    if (f->db != NULL && f->inputs++ < INPUTS_MAX) return;
    fuzz_ingest_close(f);
    *f = (struct fuzz_ingest){.path = "/tmp/varve-fuzz-XXXXXX"};
    if (mkdtemp(f->path) == NULL) abort();
    struct storage_options o = {.path = f->path, .wal_sync = WAL_SYNC_OFF, .max_exemplars = 500};
    if (storage_open(&o, &f->db) != NULL) abort();
    struct ingest_options io = {.db = f->db, .max_body_raw = 1 << 20};
    f->in = ingest_create(&io);
    f->scratch = ingest_scratch_create(f->in);
}

/* Sends the bytes; a reply is 204 without a body or an error with one, in JSON. */
static void fuzz_ingest_send(enum ingest_format format, str content_type, const uint8_t *data, size_t size)
{
    struct fuzz_ingest *f = &fuzz_state;
    fuzz_ingest_open(f);
    struct ingest_request rq = {.format = format,
                                .content_type = content_type,
                                .content_encoding = STR("identity"),
                                .body = {(const char *)data, size}};
    struct ingest_reply reply;
    ingest_handle(f->in, f->scratch, &rq, &reply);
    if (reply.status != 204 && reply.status != 400) abort();
    if ((reply.status == 204) != (reply.body.n == 0)) abort();
    if (reply.body.n > 0 && !utf8_valid(buf_as_str(&reply.body))) abort();
    buf_deinit(&reply.body);
}

static inline void fuzz_ingest_post(enum ingest_format format, const uint8_t *data, size_t size)
{
    fuzz_ingest_send(format, STR(""), data, size);
}

#endif
