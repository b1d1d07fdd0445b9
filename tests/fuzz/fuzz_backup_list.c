/*
 * Fuzzes the list of files of a backup. The checksum under it is made good first, as a fuzzer would hardly ever guess
 * it; what is taken prints and reads back the same.
 */
#include <stdio.h>

#include "server/backup_list.h"
#include "storage/base/assert.h"
#include "storage/base/hash.h"

static void read_back(const struct backup_list *list)
{
    struct arena a = {0};
    struct buf text = {0};
    struct backup_list again;
    backup_list_print(list, &text);
    err e = backup_list_parse(buf_as_str(&text), &a, &again);
    check(e == NULL && again.n == list->n);
    for (size_t i = 0; i < list->n; i++) {
        const struct backup_file *f = backup_list_find(&again, list->v[i].path);
        check(f != NULL && f->sum == list->v[i].sum && f->bytes == list->v[i].bytes && f->inode == list->v[i].inode);
    }
    buf_deinit(&text);
    arena_deinit(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a = {0};
    struct buf text = {0};
    struct backup_list list;
    err_free(backup_list_parse((str){(const char *)data, n}, &a, &list));
    buf_put(&text, data, n);
    buf_printf(&text, "end %016llx\n", (unsigned long long)checksum64(data, n));
    err e = backup_list_parse(buf_as_str(&text), &a, &list);
    if (e == NULL) read_back(&list);
    err_free(e);
    buf_deinit(&text);
    arena_deinit(&a);
    return 0;
}
