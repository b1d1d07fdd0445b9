/* Fuzzes the texts of /proc/self/cgroup and mountinfo, which a zero byte parts. */
#include "server/cgroup.h"
#include "storage/base/assert.h"

#define PLACES 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct cgroup_place places[PLACES];
    const char *text = (const char *)data;
    const char *zero = n > 0 ? memchr(text, '\0', n) : NULL;
    size_t first = zero == NULL ? n : (size_t)(zero - text);
    size_t used = first + (zero != NULL);
    size_t found = cgroup_places((str){text, first}, (str){text + used, n - used}, places, PLACES);
    check(found <= PLACES);
    for (size_t i = 0; i < found; i++) {
        size_t length = strnlen(places[i].dir, sizeof places[i].dir);
        check(length < sizeof places[i].dir);
        check(places[i].top > 0 && places[i].top <= length);
        check(places[i].dir[0] == '/');
    }
    return 0;
}
