/*
 * access.c: why a path can't be used.
 *
 * "Permission denied" sends people guessing: which of the folders on the way, and who is this process
 * in its container? So the path is walked up until a part of it is found that exists and denies this
 * process what a data directory needs: reading and writing, and entering if it is a folder. What is
 * found can have changed since the call that failed: it only words the message. Stateless.
 */
#include "storage/base/access.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Cuts the last name off a path; false if there was none to cut. "a" becomes ".", "/a" becomes "/". */
static bool cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (strcmp(path, "/") == 0 || strcmp(path, ".") == 0) return false;
    if (slash == NULL)
        memcpy(path, ".", 2);
    else
        slash[slash == path ? 1 : 0] = '\0';
    return true;
}

/* Cuts `path` (PATH_MAX bytes) down to the part of it that denies access, and fills st; false if none does. */
static bool find_denier(char *path, struct stat *st)
{
    do {
        if (stat(path, st) != 0) continue;
        int wanted = R_OK | W_OK | (S_ISDIR(st->st_mode) ? X_OK : 0);
        if (faccessat(AT_FDCWD, path, wanted, AT_EACCESS) != 0) return true;
    } while (cut_name(path));
    return false;
}

static err denied(err e, const char *path)
{
    char part[PATH_MAX], whole[PATH_MAX];
    struct stat st;
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part || !find_denier(part, &st)) return e;
    const char *name = realpath(part, whole) != NULL ? whole : part;
    unsigned uid = geteuid(), gid = getegid();
    err told = err_new(err_code(e),
                       "%s: %s belongs to uid %u, gid %u (mode %04o), this process runs as uid %u, gid %u; "
                       "give it to this process (chown -R %u:%u %s) or run it as the owner",
                       err_message(e), name, st.st_uid, st.st_gid, st.st_mode & 07777, uid, gid, uid, gid, name);
    err_free(e);
    return told;
}

static err read_only(err e)
{
    err told = err_new(err_code(e), "%s: it is mounted read-only; mount it writable, or set --storage.path elsewhere",
                       err_message(e));
    err_free(e);
    return told;
}

err access_error(int errnum, const char *what, const char *path)
{
    err e = err_errno(errnum, "%s %s", what, path);
    if (errnum == EACCES || errnum == EPERM) return denied(e, path);
    return errnum == EROFS ? read_only(e) : e;
}
