/*
 * part_entry.c: walking the postings of a part in the order of (label name, value).
 *
 * An iterator pins one postings frame at a time; what it yields points into that frame. Its owner closes
 * it, also after an error. Layout of the frames: part_seal.c.
 */
#include "storage/part_format.h"

static int key_cmp(struct part_key a, struct part_key b)
{
    if (a.name != b.name) return a.name < b.name ? -1 : 1;
    return (a.value > b.value) - (a.value < b.value);
}

static err damaged(struct part_entry *it, const char *what)
{
    return part_cursor_corrupt(it->c, PART_FRAME_POSTINGS, it->frame, what);
}

void part_entry_close(struct part_entry *it)
{
    if (it->e != NULL) part_cursor_release(it->c, it->e);
    it->e = NULL;
}

static err open_frame(struct part_entry *it, uint32_t frame)
{
    part_entry_close(it);
    it->frame = frame;
    TRY(part_cursor_hold(it->c, PART_FRAME_POSTINGS, frame, &it->e));
    if (!part_pack_open(it->e->data, it->e->n, &it->view)) return damaged(it, "malformed postings frame");
    return NULL;
}

/* Puts the iterator before a group's first record. */
static void open_group(struct part_entry *it, uint32_t g)
{
    it->group = g;
    it->at = part_pack_group(&it->view, g).first;
    it->group_end = g + 1 < it->view.n_groups ? part_pack_group(&it->view, g + 1).first : it->view.n;
    it->rest = part_pack_from(&it->view, g);
    it->key = (struct part_key){0, 0};
}

/* Reads one record at `rest`. */
static err read_record(struct part_entry *it, bool first_of_group)
{
    struct part_key before = it->key;
    uint64_t name = cursor_varint(&it->rest), value = cursor_varint(&it->rest);
    it->set = cursor_lenstr(&it->rest);
    if (!first_of_group) {
        if (name == 0) value += before.value;
        name += before.name;
    }
    uint32_t limit = it->c->p->footer.n_symbols;
    if (it->rest.failed || name >= limit || value >= limit) return damaged(it, "malformed postings record");
    it->key = (struct part_key){(uint32_t)name, (uint32_t)value};
    if (!first_of_group && key_cmp(it->key, before) <= 0) return damaged(it, "postings out of order");
    it->at++;
    return NULL;
}

err part_entry_next(struct part_entry *it)
{
    if (it->at < it->group_end) return read_record(it, false);
    if (it->group + 1 < it->view.n_groups) {
        open_group(it, it->group + 1);
    } else if (it->frame + 1 < it->c->ix->frames[PART_FRAME_POSTINGS].n) {
        TRY(open_frame(it, it->frame + 1));
        open_group(it, 0);
    } else {
        it->end = true;
        return NULL;
    }
    return read_record(it, true);
}

/* The last frame that starts at or before key; 0 if none does. */
static uint32_t frame_before(const struct part_index *ix, struct part_key key)
{
    size_t low = 0, high = ix->frames[PART_FRAME_POSTINGS].n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (key_cmp(ix->postings_first[middle], key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

/* The last group of the open frame that starts at or before key; 0 if none does. */
static err group_before(struct part_entry *it, struct part_key key, uint32_t *out)
{
    uint32_t low = 0, high = it->view.n_groups;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        open_group(it, middle);
        TRY(read_record(it, true));
        if (key_cmp(it->key, key) <= 0)
            low = middle;
        else
            high = middle;
    }
    *out = low;
    return NULL;
}

err part_entry_seek(struct part_cursor *c, struct part_key key, struct part_entry *it)
{
    *it = (struct part_entry){.c = c};
    TRY(part_cursor_index(c));
    if (c->ix->frames[PART_FRAME_POSTINGS].n == 0) {
        it->end = true;
        return NULL;
    }
    uint32_t g;
    TRY(open_frame(it, frame_before(c->ix, key)));
    TRY(group_before(it, key, &g));
    open_group(it, g);
    TRY(read_record(it, true));
    while (!it->end && key_cmp(it->key, key) < 0)
        TRY(part_entry_next(it));
    return NULL;
}
