/*
 * cli_backup.c: varve backup and varve restore.
 *
 * A data directory that a server holds is copied through a snapshot, which the server makes (all that
 * was written before is in it) and which is deleted afterwards; one that nobody holds is locked and
 * copied as it is, log and all. Both commands work on this machine's files: the server must run here.
 */
#include <stdio.h>

#include "server/backup.h"
#include "server/backup_file.h"
#include "server/cli_commands.h"
#include "server/cli_progress.h"
#include "storage/base/json.h"

struct backup_call {
    struct cli_call *call;
    enum cli_format format;
    const char *data; /* the data directory */
    struct backup_options options;
    struct backup_result result;
    struct buf notes;
    struct progress progress;
};

static void show_progress(void *arg, uint64_t bytes, uint64_t total)
{
    struct backup_call *b = arg;
    b->progress.total = total;
    progress_update(&b->progress, bytes, 0);
}

/* ---- what was done ------------------------------------------------------------------------------------------- */

static void print_json(const struct backup_call *b, const char *path, struct buf *out)
{
    const struct backup_result *r = &b->result;
    struct json j;
    json_init(&j, out);
    json_object(&j);
    json_key(&j, "backup");
    json_cstr(&j, r->name);
    json_key(&j, "path");
    json_cstr(&j, path);
    json_key(&j, "files");
    json_u64(&j, r->files);
    json_key(&j, "bytes");
    json_u64(&j, r->bytes);
    json_key(&j, "copied_files");
    json_u64(&j, r->copied_files);
    json_key(&j, "copied_bytes");
    json_u64(&j, r->copied_bytes);
    json_object_end(&j);
    buf_str(out, STR("\n"));
}

static void print_text(const struct backup_call *b, const char *path, struct buf *out)
{
    const struct backup_result *r = &b->result;
    buf_printf(out, "%s: %llu files, ", path, (unsigned long long)r->files);
    progress_bytes(out, r->bytes);
    buf_printf(out, "; %llu copied (", (unsigned long long)r->copied_files);
    progress_bytes(out, r->copied_bytes);
    buf_printf(out, "), %llu shared with the backup before\n", (unsigned long long)(r->files - r->copied_files));
}

static void show_notes(struct backup_call *b)
{
    progress_clear(&b->progress);
    if (b->notes.n > 0) fwrite(b->notes.data, 1, b->notes.n, stderr);
}

static int finish(struct backup_call *b, err e, const char *path)
{
    struct buf out = {0};
    show_notes(b);
    if (e != NULL) return cli_report(e);
    if (b->format == CLI_JSON)
        print_json(b, path, &out);
    else
        print_text(b, path, &out);
    int code = cli_print(&out);
    buf_deinit(&out);
    return code;
}

/* ---- backup -------------------------------------------------------------------------------------------------- */

static int make(struct backup_call *b, const char *source)
{
    char path[BACKUP_PATH_MAX];
    b->options.source = source;
    progress_start(&b->progress, NULL, 0);
    err e = backup_make(env_posix(), &b->options, &b->result);
    if (e == NULL) e = backup_path(path, b->options.dir, b->result.name);
    return finish(b, e, path);
}

/* Asks the server for a snapshot; its name in the call's arena. */
static int create_snapshot(struct cli_call *call, str *name)
{
    struct client_answer answer;
    struct api_answer api;
    struct buf form = {0};
    str raw;
    int code = cli_ask(call, "/snapshot/create", &form, NULL, &answer, &api);
    if (code == CLI_OK) {
        err e = api_member(buf_as_str(&answer.body), STR("snapshot"), &call->arena, &raw);
        if (e == NULL) e = api_string_parse(raw, &call->arena, name);
        *name = arena_str(&call->arena, *name);
        if (e == NULL && memchr(name->p, '/', name->n) != NULL)
            e = err_new(ERR_IO, "the server names a snapshot with a slash");
        if (e != NULL) {
            cli_report(e);
            code = CLI_FAILED;
        }
    }
    client_answer_deinit(&answer);
    return code;
}

static int delete_snapshot(struct cli_call *call, str name)
{
    struct client_answer answer;
    struct api_answer api;
    struct buf form = {0};
    cli_form(&form, "snapshot", name.p);
    int code = cli_ask(call, "/snapshot/delete", &form, NULL, &answer, &api);
    client_answer_deinit(&answer);
    buf_deinit(&form);
    return code;
}

static int through_server(struct backup_call *b)
{
    char snapshots[BACKUP_PATH_MAX], source[BACKUP_PATH_MAX];
    struct backup_file st;
    str name = {0};
    int code = create_snapshot(b->call, &name);
    if (code != CLI_OK) return code;
    err e = backup_path(snapshots, b->data, "snapshots");
    if (e == NULL) e = backup_path(source, snapshots, name.p);
    if (e == NULL && (e = backup_stat(source, &st)) != NULL)
        e = err_wrap(e, "the server at %s has other data than --storage.path=%s", cli_get(b->call, "url"), b->data);
    code = e != NULL ? cli_report(e) : make(b, source);
    int deleted = delete_snapshot(b->call, name);
    return code != CLI_OK ? code : deleted;
}

/* Is it a data directory? The lock file must not be made in any other. */
static err check_data(const struct backup_call *b)
{
    static const char *const signs[] = {"IDENTITY", "MANIFEST"};
    char path[BACKUP_PATH_MAX];
    struct backup_file st;
    for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
        TRY(backup_path(path, b->data, signs[i]));
        err e = backup_stat(path, &st);
        if (e == NULL) return NULL;
        err_free(e);
    }
    return err_new(ERR_INVALID, "%s is not a data directory (--storage.path)", b->data);
}

static int backup_any(struct backup_call *b)
{
    struct env *env = env_posix();
    struct env_file *lock;
    char path[BACKUP_PATH_MAX];
    err e = check_data(b);
    if (e == NULL) e = backup_path(path, b->data, "LOCK");
    if (e != NULL) return cli_report(e);
    e = env->ops->lock(env, path, &lock);
    if (err_code(e) == ERR_LOCKED) {
        err_free(e);
        return through_server(b);
    }
    if (e != NULL) return cli_report(e);
    int code = make(b, b->data);
    env->ops->unlock(lock);
    return code;
}

static int run_backup(struct cli_call *call)
{
    struct backup_call b = {.call = call, .data = cli_get(call, "storage.path")};
    b.options = (struct backup_options){.dir = call->words[0], .verify = cli_has(call, "verify"), .notes = &b.notes};
    b.options.progress = show_progress;
    b.options.progress_arg = &b;
    err e = cli_get_format(call, &b.format);
    int code = e != NULL ? cli_report(e) : backup_any(&b);
    buf_deinit(&b.notes);
    return code;
}

/* ---- restore ------------------------------------------------------------------------------------------------- */

static int run_restore(struct cli_call *call)
{
    struct backup_call b = {.call = call};
    err e = cli_get_format(call, &b.format);
    if (e != NULL) return cli_report(e);
    progress_start(&b.progress, NULL, 0);
    e = backup_restore(env_posix(), call->words[0], call->words[1], &b.notes, show_progress, &b, &b.result);
    int code = finish(&b, e, call->words[1]);
    buf_deinit(&b.notes);
    return code;
}

static const struct cli_flag backup_flags[] = {
    {"storage.path", "PATH", "varve-data", "VARVE_STORAGE_PATH", "the data directory, on this machine"},
    {"verify", NULL, NULL, NULL,
     "read everything again: what is shared with the backup before, and the whole as verify"},
    {"format", "FORMAT", "table", NULL, "table (a line) or json"},
};
static const struct cli_flag restore_flags[] = {
    {"format", "FORMAT", "table", NULL, "table (a line) or json"},
};

const struct cli_command cli_backup = {
    .name = "backup",
    .words = "DIR [--storage.path=PATH]",
    .help = "add a backup of a data directory to those in DIR, sharing unchanged files with the one before; "
            "a running server keeps running",
    .min_words = 1,
    .max_words = 1,
    .asks_server = true,
    .flags = backup_flags,
    .n_flags = ARRAY_LEN(backup_flags),
    .run = run_backup,
};
const struct cli_command cli_restore = {
    .name = "restore",
    .words = "BACKUP PATH",
    .help = "check a backup (or the newest of a folder of them) and make a data directory of it; PATH must be "
            "absent or empty",
    .min_words = 2,
    .max_words = 2,
    .flags = restore_flags,
    .n_flags = ARRAY_LEN(restore_flags),
    .run = run_restore,
};
