/*
 * relro.c: makes GNU_RELRO true in a static PIE.
 *
 * A dynamic loader turns that segment (GOT, tables of constructors, constants with addresses in them)
 * read-only once it has relocated the program; musl's start code for static PIEs relocates but leaves it
 * writable. This does the rest, before any other constructor. The linker ends the segment on the largest
 * page there is, so the rounding down at its end loses nothing.
 */
#include <elf.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden"))); /* where the program was put */

static void __attribute__((constructor(101))) protect_relro(void)
{
    uintptr_t base = (uintptr_t)&__ehdr_start, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const Elf64_Phdr *segment = (const Elf64_Phdr *)(base + __ehdr_start.e_phoff);
    for (int i = 0; i < __ehdr_start.e_phnum; i++) {
        if (segment[i].p_type != PT_GNU_RELRO) continue;
        uintptr_t first = (base + segment[i].p_vaddr) & -page;
        uintptr_t end = (base + segment[i].p_vaddr + segment[i].p_memsz) & -page;
        if (first < end && mprotect((void *)first, end - first, PROT_READ) != 0) _exit(127);
    }
}
