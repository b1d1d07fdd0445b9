/*
 * Fuzzes the reading of files to import: plain, gzip or zstd, as the bytes say, in pieces of the size that the first
 * byte says. What comes out is bounded here only: a stream may expand to any length.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "server/cli_input.h"
#include "server/url.h"
#include "storage/base/arena.h"
#include "storage/base/assert.h"

#define OUT_MAX ((size_t)1 << 20)

static void read_all(int fd, size_t piece)
{
    char room[256];
    size_t total = 0, got = 1;
    struct input *in = input_of(fd);
    err e = NULL;
    while (e == NULL && got > 0 && total < OUT_MAX) {
        e = input_read(in, room, piece, &got);
        check(e != NULL || got <= piece);
        total += got;
    }
    err_free(e);
    input_close(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a = {0};
    struct url u;
    if (n < 2) return 0;
    err_free(url_parse((str){(const char *)data + 1, n - 1}, &a, &u)); /* it takes any bytes too */
    arena_deinit(&a);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    check(fd >= 0 && write(fd, data + 1, n - 1) == (ssize_t)(n - 1) && lseek(fd, 0, SEEK_SET) == 0);
    read_all(fd, (size_t)data[0] + 1);
    return 0;
}
