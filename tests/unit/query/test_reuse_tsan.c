/*
 * test_reuse_tsan.c: writers that read their own writes from kept answers, while others fill and replace the same ones.
 */
#include "tests/unit/query/query_db.h"

#include <pthread.h>

#define WRITERS 4
#define WRITES 150
#define STEP_MS 15000

static struct query_db shared;

struct writer {
    int number;
    char *wrong; /* the first answer without the write; NULL: none */
};

static char *ask(const char *text, int64_t end_ms)
{
    struct query_db own = shared; /* notes of its own */
    own.notes = (struct query_notes){0};
    char *answer = query_db_run(&own, text, (double)end_ms / 1000 - 300, (double)end_ms / 1000, STEP_MS / 1000.0);
    query_notes_deinit(&own.notes);
    return answer;
}

/* Each number is written once and must be in the next answer, at the last step that there is. */
static void *write_and_read(void *arg)
{
    struct writer *w = arg;
    char series[32], number[32];
    snprintf(series, sizeof series, "m{w=\"%d\"}", w->number);
    for (int i = 0; i < WRITES && w->wrong == NULL; i++) {
        int64_t t = 1000000 + i * 2000;
        double v = w->number * 100000 + i;
        query_db_append(&shared, series, &t, &v, NULL, 1);
        snprintf(number, sizeof number, "\"%.0f\"", v);
        char *answer = ask(i % 2 ? "m" : "max by (w) (m)", (t + STEP_MS) / STEP_MS * STEP_MS);
        if (strstr(answer, number) == NULL)
            w->wrong = answer;
        else
            mem_free(answer);
    }
    return NULL;
}

static void test_read_your_writes(void **state)
{
    (void)state;
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    query_db_open(&shared, &(struct query_options){.result_cache_bytes = 64 << 10});
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.number = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, write_and_read, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < WRITERS; i++)
        if (writers[i].wrong != NULL) fail_msg("writer %d: %.600s", i + 1, writers[i].wrong);
    query_db_close(&shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read_your_writes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
