/*
 * stream.h: a long answer, made by a worker while the loop sends it.
 *
 * Two buffers go round: the worker fills one while the loop sends the other; a worker that is ahead
 * waits, so a slow client holds back its producer and memory stays bounded. The worker's functions
 * and the loop's are named apart below.
 */
#ifndef VARVE_SERVER_STREAM_H
#define VARVE_SERVER_STREAM_H

#include "server/loop.h"
#include "storage/base/buf.h"

struct stream;

/* `task` is posted to `loop` whenever there is something for the loop to do. */
struct stream *stream_create(struct loop *loop, struct task *task);
void stream_destroy(struct stream *s); /* after the loop saw the end; NULL allowed */

/* Worker: appends bytes; may block until the client has taken some. False: the client is gone, stop. */
bool stream_write(struct stream *s, str bytes);
/* Worker, once, as its last touch: the end; `complete` false means that something is missing. */
void stream_end(struct stream *s, bool complete);
bool stream_started(const struct stream *s); /* worker: something was handed to the loop already */

/* Loop: bytes to send next, swapped into *out (emptied by the caller before). */
enum stream_state {
    STREAM_DATA,    /* *out has bytes */
    STREAM_WAIT,    /* nothing now; the task will be posted */
    STREAM_DONE,    /* nothing more will come, all was said */
    STREAM_ABORTED, /* nothing more will come, and something is missing */
};
enum stream_state stream_take(struct stream *s, struct buf *out);
/* Loop, first thing in the task: true if the stream posted it, false if someone else did. */
bool stream_task_ran(struct stream *s);
/* Loop: nobody reads any more; the worker is told at its next write. stream_take goes on until the end. */
void stream_drop(struct stream *s);

#endif
