/*
 * qemu_count.c: a plugin for qemu's user mode that counts the instructions a program executes.
 *
 *   gcc -shared -fPIC -o qemu_count.so qemu_count.c;  qemu-aarch64 -plugin ./qemu_count.so PROGRAM ...
 *
 * Prints "instructions N" to stderr at the end. Debian ships no header of the plugin interface, so what is used of
 * its version 1 is declared here. Each translated block adds its length when it is entered. One thread is counted
 * rightly; several would race.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb; /* a block of guest code */
struct qemu_info;

typedef void (*on_translate)(plugin_id id, struct qemu_plugin_tb *tb);
typedef void (*on_exit)(plugin_id id, void *arg);

enum inline_operation { ADD_U64 };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, on_translate call);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum inline_operation operation, void *target,
                                              uint64_t operand);
void qemu_plugin_register_atexit_cb(plugin_id id, on_exit call, void *arg);

/* What qemu asks the plugin for. */
extern int qemu_plugin_version;
int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv);

EXPORTED int qemu_plugin_version = 1;

static uint64_t instructions;

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &instructions, qemu_plugin_tb_n_insns(tb));
}

static void ended(plugin_id id, void *arg)
{
    (void)id;
    (void)arg;
    fprintf(stderr, "instructions %llu\n", (unsigned long long)instructions);
}

EXPORTED int qemu_plugin_install(plugin_id id, const struct qemu_info *info, int argc, char **argv)
{
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
