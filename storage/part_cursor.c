/*
 * part_cursor.c: one thread's view of a part: pinned frames and what was decoded last.
 *
 * Reads come in runs: the next series is mostly in the frame of the last, and so are its values. A
 * cursor therefore keeps a few frames of each kind pinned, in turn, and asks the shared cache only when it
 * moves on. Symbol frames stay pinned for the cursor's life, since their strings are handed out.
 */
#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/part_format.h"
#include "storage/scratch.h"

/* How the pins are shared out among kinds of frames. */
static const struct {
    uint8_t from, n;
} pin_slots[PART_FRAME_KINDS] = {
    [PART_FRAME_VALUE] = {0, 4},  [PART_FRAME_TIME] = {4, 2},   [PART_FRAME_COLUMN] = {6, 2},
    [PART_FRAME_SERIES] = {8, 1}, [PART_FRAME_SYMBOL] = {9, 1}, /* of part_symbol_walk only */
};
static_assert(PART_PINS == 4 + 2 + 2 + 1 + 1, "the pins above");

struct part_cursor *part_cursor_create(struct part *p)
{
    /* most of a cursor is room for many labels, which nothing reads before it is written: left as it is */
    struct part_cursor *c = mem_alloc(sizeof *c);
    memset(c, 0, offsetof(struct part_cursor, record.pairs));
    c->p = part_ref(p);
    return c;
}

void part_cursor_destroy(struct part_cursor *c)
{
    if (c == NULL) return;
    for (size_t i = 0; i < PART_PINS; i++)
        part_cursor_release(c, c->pins[i].e);
    for (size_t i = 0; i < PART_TIME_COLUMNS; i++)
        mem_free(c->times[i].t);
    for (size_t i = 0; c->symbols != NULL && i < c->ix->frames[PART_FRAME_SYMBOL].n; i++)
        part_cursor_release(c, c->symbols[i]);
    mem_free(c->symbols);
    part_record_deinit(&c->record);
    part_unref(c->p);
    mem_free(c);
}

err part_cursor_index(struct part_cursor *c)
{
    return c->ix != NULL ? NULL : part_load_index(c->p, &c->ix);
}

static uint64_t offset_of(const struct part_cursor *c, enum part_frame_kind kind, uint32_t frame)
{
    const struct part_frames *frames = &c->ix->frames[kind];
    return frame < frames->n ? frames->v[frame].offset : c->p->footer.meta.bytes;
}

err part_cursor_corrupt(struct part_cursor *c, enum part_frame_kind kind, uint32_t frame, const char *what)
{
    return part_corrupt(c->p, offset_of(c, kind, frame), what);
}

err part_cursor_blame(struct part_cursor *c, enum part_frame_kind kind, uint32_t frame, err e)
{
    return e == NULL ? NULL : part_blame(c->p, offset_of(c, kind, frame), e);
}

uint32_t part_cursor_frame_of(const uint32_t *first, size_t n, uint32_t x)
{
    size_t low = 0, high = n; /* first[low] <= x */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (first[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

struct load {
    struct part_cursor *c;
    enum part_frame_kind kind;
    const struct part_frame *frame;
};

/* fcache_load_fn */
static err load_frame(void *arg, uint64_t offset, uint8_t **data, size_t *n)
{
    struct load *l = arg;
    struct part_cursor *c = l->c;
    struct scratch_pool *pool = fcache_scratch(c->p->cache);
    struct scratch *scratch = scratch_take(pool);
    err e = part_read_frame(c->p, scratch->z, &scratch->disk, l->frame, data, n);
    scratch_give(pool, scratch);
    if (e != NULL || l->kind != PART_FRAME_SYMBOL) return e;
    e = part_symbol_expand(&c->p->key, data, n);
    return e == NULL ? NULL : part_blame(c->p, offset, e);
}

err part_cursor_hold(struct part_cursor *c, enum part_frame_kind kind, uint32_t frame, const struct fcache_entry **out)
{
    const struct part_frames *frames = &c->ix->frames[kind];
    if (frame >= frames->n) return part_cursor_corrupt(c, kind, frame, "reference to a frame that is not there");
    struct load l = {c, kind, &frames->v[frame]};
    return fcache_get(c->p->cache, c->p->footer.meta.id, l.frame->offset, load_frame, &l, out);
}

void part_cursor_release(struct part_cursor *c, const struct fcache_entry *e)
{
    if (e != NULL) fcache_unpin(c->p->cache, e);
}

err part_cursor_frame(struct part_cursor *c, enum part_frame_kind kind, uint32_t frame, const struct fcache_entry **out)
{
    struct part_pin *pins = &c->pins[pin_slots[kind].from];
    uint8_t n = pin_slots[kind].n;
    check(n > 0);
    for (uint8_t i = 0; i < n; i++) {
        if (pins[i].e != NULL && pins[i].frame == frame) {
            *out = pins[i].e;
            return NULL;
        }
    }
    const struct fcache_entry *e;
    TRY(part_cursor_hold(c, kind, frame, &e));
    struct part_pin *pin = &pins[c->pin_at[kind]];
    c->pin_at[kind] = (uint8_t)((c->pin_at[kind] + 1) % n);
    part_cursor_release(c, pin->e);
    *pin = (struct part_pin){e, frame};
    *out = e;
    return NULL;
}
