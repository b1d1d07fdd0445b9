/*
 * Unit stream (and loop): bytes arrive whole and in order, memory stays bounded, a dropped stream ends its
 * producer. Run under ThreadSanitizer too.
 */
#include "tests/unit/testing.h"

#include "server/stream.h"
#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#include <unistd.h>

struct flow {
    struct task task; /* first */
    struct loop *loop;
    struct stream *stream;
    size_t lines;    /* to write */
    size_t received; /* bytes */
    size_t drop_at;  /* bytes after which the reader goes away; 0 = never */
    bool complete;   /* what the producer says */
    bool gave_up;    /* the producer was told to stop */
    enum stream_state end;
    size_t largest;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool ended; /* guarded by lock */
};

#define LINE 100

static void fill_line(char *line, size_t number)
{
    memset(line, 'a' + (int)(number % 26), LINE);
}

static void *produce(void *arg)
{
    struct flow *f = arg;
    char line[LINE];
    for (size_t i = 0; i < f->lines && !f->gave_up; i++) {
        fill_line(line, i);
        f->gave_up = !stream_write(f->stream, (str){line, LINE});
    }
    stream_end(f->stream, f->complete);
    return NULL;
}

static void verify(struct flow *f, const struct buf *b)
{
    for (size_t i = 0; i < b->n; i++)
        check(b->data[i] == 'a' + ((f->received + i) / LINE) % 26);
    f->received += b->n;
    if (b->cap > f->largest) f->largest = b->cap;
}

static void consume(struct task *t)
{
    struct flow *f = (struct flow *)t;
    struct buf b = {0};
    check(stream_task_ran(f->stream));
    enum stream_state s;
    while ((s = stream_take(f->stream, &b)) == STREAM_DATA) {
        verify(f, &b);
        buf_clear(&b);
        if (f->drop_at > 0 && f->received >= f->drop_at) stream_drop(f->stream);
    }
    buf_deinit(&b);
    if (s == STREAM_WAIT) return;
    pthread_mutex_lock(&f->lock);
    f->end = s;
    f->ended = true;
    pthread_cond_signal(&f->done);
    pthread_mutex_unlock(&f->lock);
}

static void release(struct task *t)
{
    loop_release(((struct flow *)t)->loop);
}

static void run(struct flow *f)
{
    pthread_t producer;
    f->task.run = consume;
    f->loop = loop_create(0);
    f->stream = stream_create(f->loop, &f->task);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->done, NULL);
    assert_ok(loop_start(f->loop));
    assert_int_equal(pthread_create(&producer, NULL, produce, f), 0);
    pthread_mutex_lock(&f->lock);
    while (!f->ended)
        pthread_cond_wait(&f->done, &f->lock);
    pthread_mutex_unlock(&f->lock);
    pthread_join(producer, NULL);
    f->task.run = release;
    loop_post(f->loop, &f->task);
    loop_join(f->loop);
    loop_destroy(f->loop);
    stream_destroy(f->stream);
    pthread_cond_destroy(&f->done);
    pthread_mutex_destroy(&f->lock);
}

static void test_whole(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 655, 656, 700, 20000, 100000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct flow f = {.lines = sizes[i], .complete = true};
        run(&f);
        assert_int_equal(f.end, STREAM_DONE);
        assert_int_equal(f.received, sizes[i] * LINE);
        assert_true(f.largest <= 256u << 10);
    }
}

static void test_incomplete(void **state)
{
    (void)state;
    struct flow f = {.lines = 5000, .complete = false};
    run(&f);
    assert_int_equal(f.end, STREAM_ABORTED);
    assert_int_equal(f.received, 5000 * LINE);
}

static void test_dropped(void **state)
{
    (void)state;
    struct flow f = {.lines = SIZE_MAX, .complete = true, .drop_at = 200000};
    run(&f);
    assert_true(f.gave_up);
    assert_int_equal(f.end, STREAM_ABORTED);
}

/* ---- loop ---------------------------------------------------------------------------------------------------- */

#define POSTERS 3
#define POSTS 5000

struct mark {
    struct task task; /* first */
    struct crowd *crowd;
    unsigned poster, number;
};

struct crowd {
    struct loop *loop;
    unsigned next[POSTERS]; /* the loop's: number expected next of each poster */
    unsigned total, woken;
    struct mark marks[POSTERS][POSTS];
};

static void count_mark(struct task *t)
{
    struct mark *m = (struct mark *)t;
    check(m->crowd->next[m->poster]++ == m->number);
    if (++m->crowd->total == POSTERS * POSTS) loop_release(m->crowd->loop);
}

static void count_wake(void *arg)
{
    ((struct crowd *)arg)->woken++;
}

static void *post_all(void *arg)
{
    struct mark *m = arg;
    for (unsigned i = 0; i < POSTS; i++)
        loop_post(m[i].crowd->loop, &m[i].task);
    return NULL;
}

static void test_loop_posts(void **state)
{
    (void)state;
    struct crowd *c = mem_zalloc(sizeof *c);
    pthread_t threads[POSTERS];
    c->loop = loop_create(7);
    c->loop->woken = count_wake;
    c->loop->arg = c;
    for (unsigned p = 0; p < POSTERS; p++)
        for (unsigned i = 0; i < POSTS; i++)
            c->marks[p][i] = (struct mark){{NULL, count_mark}, c, p, i};
    assert_ok(loop_start(c->loop));
    for (unsigned p = 0; p < POSTERS; p++)
        assert_int_equal(pthread_create(&threads[p], NULL, post_all, c->marks[p]), 0);
    for (unsigned p = 0; p < POSTERS; p++)
        pthread_join(threads[p], NULL);
    loop_join(c->loop);
    assert_int_equal(c->total, POSTERS * POSTS);
    assert_true(c->woken > 0);
    loop_destroy(c->loop);
    mem_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_incomplete),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_loop_posts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
