/*
 * sim_disk.c: the in-memory disk: nodes, names, pending changes and the fates that a crash deals.
 *
 * Model:
 *   - A file has a view, a durable image and an ordered list of pending changes (writes at an offset,
 *     truncations) that lead from the one to the other. Sync applies them and empties the list.
 *   - A directory has two tables of entries. A change of names enters the view at once and the
 *     disk's list of pending changes; syncing the directory applies its changes in order. A rename
 *     is one change: both of its halves happen or none (it belongs to the directory of the new name).
 *   - File contents and names are independent of each other, as POSIX has it: a synced file whose
 *     name was not synced can vanish, and a name that survived can show an empty or torn file.
 *   - A crash gives each pending change a fate. Writes can be torn at sector borders or have sectors
 *     of zeros or garbage among them, but bytes that were durable before are never harmed by an
 *     append next to them.
 *
 * References: entries (both tables), pending changes and open handles hold one each on a node.
 */
#include "tests/sim/sim_disk.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#include <errno.h>

struct bytes {
    uint8_t *p;
    size_t n, cap;
};

struct change { /* of a file's content */
    bool truncate;
    uint64_t at; /* offset written to, or the new size */
    uint8_t *p;
    size_t n;
};

struct entry {
    char *name;
    struct sim_node *node;
};

struct entries {
    struct entry *v;
    size_t n, cap;
};

struct sim_node {
    unsigned refs;
    bool is_dir;
    struct bytes view, durable; /* files */
    struct change *changes;
    size_t n_changes, cap_changes;
    struct entries names, durable_names; /* directories */
    struct sim_node *prev, *next;        /* all nodes of the disk */
};

/* A pending change of names: node leaves (from, from_name) if from is set, and enters (to, to_name) if to is set. */
struct move {
    struct sim_node *from, *to, *node;
    char *from_name, *to_name;
};

struct sim_disk {
    struct rng *rng;
    struct sim_node *root, *nodes;
    struct move *moves;
    size_t n_moves, cap_moves;
};

/* ---- bytes -------------------------------------------------------------------------------------------------- */

static void bytes_resize(struct bytes *b, size_t n)
{
    b->p = mem_grow(b->p, &b->cap, n ? n : 1, 1);
    if (n > b->n) memset(b->p + b->n, 0, n - b->n);
    b->n = n;
}

static void bytes_write(struct bytes *b, uint64_t at, const void *p, size_t n)
{
    if (n == 0) return;
    if (at + n > b->n) bytes_resize(b, at + n);
    memcpy(b->p + at, p, n);
}

static void bytes_copy(struct bytes *to, const struct bytes *from)
{
    to->n = 0;
    bytes_write(to, 0, from->p, from->n);
}

/* ---- entries of a directory --------------------------------------------------------------------------------- */

static struct entry *entries_find(const struct entries *e, str name)
{
    for (size_t i = 0; i < e->n; i++)
        if (str_eq(str_of(e->v[i].name), name)) return &e->v[i];
    return NULL;
}

static void entries_remove(struct sim_disk *d, struct entries *e, struct entry *at)
{
    struct sim_node *node = at->node;
    mem_free(at->name);
    *at = e->v[--e->n];
    sim_node_unref(d, node);
}

static void entries_set(struct sim_disk *d, struct entries *e, str name, struct sim_node *node)
{
    struct entry *old = entries_find(e, name);
    sim_node_ref(node);
    if (old != NULL) {
        sim_node_unref(d, old->node);
        old->node = node;
        return;
    }
    e->v = mem_grow(e->v, &e->cap, e->n + 1, sizeof *e->v);
    e->v[e->n++] = (struct entry){mem_dup_str(name), node};
}

static void entries_clear(struct sim_disk *d, struct entries *e)
{
    while (e->n > 0)
        entries_remove(d, e, &e->v[e->n - 1]);
}

static void entries_copy(struct sim_disk *d, struct entries *to, const struct entries *from)
{
    for (size_t i = 0; i < from->n; i++)
        sim_node_ref(from->v[i].node); /* what both tables share must survive the clearing */
    entries_clear(d, to);
    for (size_t i = 0; i < from->n; i++) {
        entries_set(d, to, str_of(from->v[i].name), from->v[i].node);
        sim_node_unref(d, from->v[i].node);
    }
}

/* ---- nodes -------------------------------------------------------------------------------------------------- */

static struct sim_node *node_new(struct sim_disk *d, bool is_dir)
{
    struct sim_node *n = mem_zalloc(sizeof *n);
    n->refs = 1;
    n->is_dir = is_dir;
    n->next = d->nodes;
    if (d->nodes != NULL) d->nodes->prev = n;
    d->nodes = n;
    return n;
}

static void clear_changes(struct sim_node *n)
{
    for (size_t i = 0; i < n->n_changes; i++)
        mem_free(n->changes[i].p);
    n->n_changes = 0;
}

static void node_free(struct sim_disk *d, struct sim_node *n)
{
    if (n->prev != NULL)
        n->prev->next = n->next;
    else
        d->nodes = n->next;
    if (n->next != NULL) n->next->prev = n->prev;
    clear_changes(n);
    entries_clear(d, &n->names);
    entries_clear(d, &n->durable_names);
    mem_free(n->names.v);
    mem_free(n->durable_names.v);
    mem_free(n->changes);
    mem_free(n->view.p);
    mem_free(n->durable.p);
    mem_free(n);
}

struct sim_node *sim_node_ref(struct sim_node *n)
{
    n->refs++;
    return n;
}

void sim_node_unref(struct sim_disk *d, struct sim_node *n)
{
    check(n->refs > 0);
    if (--n->refs == 0) node_free(d, n);
}

bool sim_node_is_dir(const struct sim_node *n)
{
    return n->is_dir;
}

str sim_node_view(const struct sim_node *n)
{
    return (str){(const char *)n->view.p, n->view.n};
}

str sim_node_durable(const struct sim_node *n)
{
    return (str){(const char *)n->durable.p, n->durable.n};
}

static struct change *add_change(struct sim_node *n)
{
    n->changes = mem_grow(n->changes, &n->cap_changes, n->n_changes + 1, sizeof *n->changes);
    return &n->changes[n->n_changes++];
}

void sim_node_write(struct sim_node *n, uint64_t offset, const void *p, size_t bytes)
{
    if (bytes == 0) return;
    bytes_write(&n->view, offset, p, bytes);
    *add_change(n) = (struct change){.at = offset, .p = mem_dup(p, bytes), .n = bytes};
}

void sim_node_truncate(struct sim_node *n, uint64_t size)
{
    bytes_resize(&n->view, size);
    *add_change(n) = (struct change){.truncate = true, .at = size};
}

static void apply_change(struct sim_node *n, const struct change *c)
{
    if (c->truncate)
        bytes_resize(&n->durable, c->at);
    else
        bytes_write(&n->durable, c->at, c->p, c->n);
}

void sim_node_sync(struct sim_node *n)
{
    for (size_t i = 0; i < n->n_changes; i++)
        apply_change(n, &n->changes[i]);
    clear_changes(n);
}

void sim_node_flip(struct sim_node *n, uint64_t offset, uint8_t mask)
{
    check(offset < n->view.n);
    n->view.p[offset] ^= mask;
    if (offset < n->durable.n) n->durable.p[offset] ^= mask;
}

/* ---- fates -------------------------------------------------------------------------------------------------- */

/* Bytes from the change's start to the end of its k-th sector. */
static size_t sector_end(const struct change *c, size_t k)
{
    uint64_t end = (c->at / SIM_SECTOR + k + 1) * SIM_SECTOR;
    return end - c->at < c->n ? (size_t)(end - c->at) : c->n;
}

static size_t sector_count(const struct change *c)
{
    return (size_t)((c->at + c->n - 1) / SIM_SECTOR - c->at / SIM_SECTOR + 1);
}

/* Some sectors arrive, others are zeros, garbage or what was there before. */
static void scatter(struct sim_disk *d, struct sim_node *n, const struct change *c)
{
    size_t from = 0;
    for (size_t k = 0; from < c->n; k++) {
        size_t to = sector_end(c, k);
        uint8_t fill[SIM_SECTOR] = {0};
        switch (rng_below(d->rng, 6)) {
        case 0:
            break;
        case 1:
            for (size_t i = 0; i < sizeof fill; i++)
                fill[i] = (uint8_t)rng_next(d->rng);
            bytes_write(&n->durable, c->at + from, fill, to - from);
            break;
        case 2:
            bytes_write(&n->durable, c->at + from, fill, to - from);
            break;
        default:
            bytes_write(&n->durable, c->at + from, c->p + from, to - from);
            break;
        }
        from = to;
    }
}

static void tear(struct sim_disk *d, struct sim_node *n, const struct change *c)
{
    uint64_t whole = rng_below(d->rng, sector_count(c) + 1);
    if (whole > 0) bytes_write(&n->durable, c->at, c->p, sector_end(c, whole - 1));
}

/* One pending change meets its fate. */
static void settle_change(struct sim_disk *d, struct sim_node *n, const struct change *c)
{
    uint64_t dice = rng_below(d->rng, 10);
    if (dice < 3) return;
    if (dice < 7 || c->truncate)
        apply_change(n, c);
    else if (dice < 9)
        tear(d, n, c);
    else
        scatter(d, n, c);
}

static void settle_file(struct sim_disk *d, struct sim_node *n, enum sim_crash_style style)
{
    size_t kept = rng_below(d->rng, n->n_changes + 1);
    for (size_t i = 0; i < n->n_changes; i++) {
        if (style == SIM_CRASH_MIXED) settle_change(d, n, &n->changes[i]);
        if (style == SIM_CRASH_KEEP || (style == SIM_CRASH_PREFIX && i < kept)) apply_change(n, &n->changes[i]);
        if (style == SIM_CRASH_PREFIX && i == kept && !n->changes[i].truncate) tear(d, n, &n->changes[i]);
    }
    clear_changes(n);
    bytes_copy(&n->view, &n->durable);
}

void sim_node_sync_failed(struct sim_disk *d, struct sim_node *n)
{
    for (size_t i = 0; i < n->n_changes; i++)
        settle_change(d, n, &n->changes[i]);
    clear_changes(n);
    if (rng_chance(d->rng, 0.5)) return;
    /* The pages were dropped: reads see the platter, but the size the kernel keeps is the view's. */
    size_t size = n->view.n;
    bytes_copy(&n->view, &n->durable);
    bytes_resize(&n->view, size);
}

static void move_apply(struct sim_disk *d, const struct move *m)
{
    if (m->from != NULL) {
        struct entry *old = entries_find(&m->from->durable_names, str_of(m->from_name));
        if (old != NULL && old->node == m->node) entries_remove(d, &m->from->durable_names, old);
    }
    if (m->to != NULL) entries_set(d, &m->to->durable_names, str_of(m->to_name), m->node);
}

static void move_deinit(struct sim_disk *d, struct move *m)
{
    if (m->from != NULL) sim_node_unref(d, m->from);
    if (m->to != NULL) sim_node_unref(d, m->to);
    sim_node_unref(d, m->node);
    mem_free(m->from_name);
    mem_free(m->to_name);
}

static void settle_names(struct sim_disk *d, enum sim_crash_style style)
{
    size_t kept = rng_below(d->rng, d->n_moves + 1);
    for (size_t i = 0; i < d->n_moves; i++) {
        bool keep = style == SIM_CRASH_KEEP || (style == SIM_CRASH_PREFIX && i < kept) ||
                    (style == SIM_CRASH_MIXED && rng_chance(d->rng, 0.5));
        if (keep) move_apply(d, &d->moves[i]);
        move_deinit(d, &d->moves[i]);
    }
    d->n_moves = 0;
}

/* All directories, each with a reference taken, so that none goes while the tables change. */
static struct sim_node **hold_directories(struct sim_disk *d, size_t *n)
{
    struct sim_node **dirs = NULL;
    size_t cap = 0;
    *n = 0;
    for (struct sim_node *at = d->nodes; at != NULL; at = at->next) {
        if (!at->is_dir) continue;
        dirs = mem_grow(dirs, &cap, *n + 1, sizeof(struct sim_node *));
        dirs[(*n)++] = sim_node_ref(at);
    }
    return dirs;
}

void sim_disk_crash(struct sim_disk *d, enum sim_crash_style style)
{
    settle_names(d, style);
    for (struct sim_node *n = d->nodes; n != NULL; n = n->next)
        if (!n->is_dir) settle_file(d, n, style);

    size_t n_dirs;
    struct sim_node **dirs = hold_directories(d, &n_dirs);
    for (size_t i = 0; i < n_dirs; i++)
        entries_copy(d, &dirs[i]->names, &dirs[i]->durable_names);
    for (size_t i = 0; i < n_dirs; i++)
        sim_node_unref(d, dirs[i]);
    mem_free(dirs);
}

/* ---- paths -------------------------------------------------------------------------------------------------- */

/* Cuts the next part off *path, skipping empty ones and "."; false at the end. */
static bool next_part(const char **path, str *part)
{
    for (;;) {
        while (**path == '/')
            (*path)++;
        size_t n = strcspn(*path, "/");
        *part = (str){*path, n};
        *path += n;
        if (n == 0) return false;
        if (!str_eq(*part, STR("."))) return true;
    }
}

static struct sim_node *child(const struct sim_node *dir, str name)
{
    if (!dir->is_dir) return NULL;
    struct entry *e = entries_find(&dir->names, name);
    return e ? e->node : NULL;
}

struct sim_node *sim_disk_find(struct sim_disk *d, const char *path)
{
    struct sim_node *at = d->root;
    str part;
    while (at != NULL && next_part(&path, &part))
        at = child(at, part);
    return at;
}

/* The directory that holds (or would hold) path's last part; ENOENT or ENOTDIR if there is none. */
static int find_parent(struct sim_disk *d, const char *path, struct sim_node **dir, str *name)
{
    str part;
    struct sim_node *at = d->root;
    if (!next_part(&path, name)) return EINVAL;
    while (next_part(&path, &part)) {
        at = child(at, *name);
        if (at == NULL) return ENOENT;
        *name = part;
    }
    *dir = at;
    return at->is_dir ? 0 : ENOTDIR;
}

/* ---- names -------------------------------------------------------------------------------------------------- */

/* Node leaves (from, from_name) and enters (to, to_name), each if set: in the view now, on the platter at a sync. */
static void add_move(struct sim_disk *d, struct sim_node *from, str from_name, struct sim_node *to, str to_name,
                     struct sim_node *node)
{
    d->moves = mem_grow(d->moves, &d->cap_moves, d->n_moves + 1, sizeof *d->moves);
    d->moves[d->n_moves++] = (struct move){
        .from = from ? sim_node_ref(from) : NULL,
        .to = to ? sim_node_ref(to) : NULL,
        .node = sim_node_ref(node),
        .from_name = from ? mem_dup_str(from_name) : NULL,
        .to_name = to ? mem_dup_str(to_name) : NULL,
    };
    if (to != NULL) entries_set(d, &to->names, to_name, node);
    if (from != NULL) entries_remove(d, &from->names, entries_find(&from->names, from_name));
}

int sim_disk_create_file(struct sim_disk *d, const char *path, struct sim_node **out)
{
    struct sim_node *dir;
    str name;
    int why = find_parent(d, path, &dir, &name);
    if (why) return why;
    struct sim_node *node = child(dir, name);
    if (node != NULL) {
        if (node->is_dir) return EISDIR;
        if (node->view.n > 0) sim_node_truncate(node, 0);
        *out = node;
        return 0;
    }
    node = node_new(d, false);
    add_move(d, NULL, STR(""), dir, name, node);
    sim_node_unref(d, node); /* the entries hold it */
    *out = node;
    return 0;
}

int sim_disk_rename(struct sim_disk *d, const char *from, const char *to)
{
    struct sim_node *from_dir, *to_dir;
    str from_name, to_name;
    int why = find_parent(d, from, &from_dir, &from_name);
    if (!why) why = find_parent(d, to, &to_dir, &to_name);
    if (why) return why;
    struct sim_node *node = child(from_dir, from_name), *old = child(to_dir, to_name);
    if (node == NULL) return ENOENT;
    if (node == old) return 0;
    if (old != NULL && old->is_dir && !node->is_dir) return EISDIR;
    if (old != NULL && node->is_dir && (!old->is_dir || old->names.n > 0)) return ENOTEMPTY;
    add_move(d, from_dir, from_name, to_dir, to_name, node);
    return 0;
}

int sim_disk_link(struct sim_disk *d, const char *from, const char *to)
{
    struct sim_node *dir, *node = sim_disk_find(d, from);
    str name;
    int why = find_parent(d, to, &dir, &name);
    if (node == NULL) return ENOENT;
    if (why) return why;
    if (node->is_dir) return EPERM;
    if (child(dir, name) != NULL) return EEXIST;
    add_move(d, NULL, STR(""), dir, name, node);
    return 0;
}

int sim_disk_unlink(struct sim_disk *d, const char *path)
{
    struct sim_node *dir;
    str name;
    int why = find_parent(d, path, &dir, &name);
    if (why) return why == ENOENT ? 0 : why;
    struct sim_node *node = child(dir, name);
    if (node == NULL) return 0;
    if (node->is_dir) return EISDIR;
    add_move(d, dir, name, NULL, STR(""), node);
    return 0;
}

int sim_disk_mkdir(struct sim_disk *d, const char *path)
{
    struct sim_node *at = d->root;
    str part;
    while (next_part(&path, &part)) {
        if (!at->is_dir) return ENOTDIR;
        struct sim_node *next = child(at, part);
        if (next == NULL) {
            next = node_new(d, true);
            entries_set(d, &at->names, part, next);
            entries_set(d, &at->durable_names, part, next);
            sim_node_unref(d, next);
        }
        at = next;
    }
    return at->is_dir ? 0 : ENOTDIR;
}

int sim_disk_rmdir(struct sim_disk *d, const char *path)
{
    struct sim_node *dir;
    str name;
    int why = find_parent(d, path, &dir, &name);
    if (why) return why;
    struct sim_node *node = child(dir, name);
    if (node == NULL) return ENOENT;
    if (!node->is_dir) return ENOTDIR;
    if (node->names.n > 0) return ENOTEMPTY;
    add_move(d, dir, name, NULL, STR(""), node);
    return 0;
}

int sim_disk_sync_dir(struct sim_disk *d, const char *path)
{
    struct sim_node *dir = sim_disk_find(d, path);
    if (dir == NULL) return ENOENT;
    if (!dir->is_dir) return ENOTDIR;
    size_t kept = 0;
    for (size_t i = 0; i < d->n_moves; i++) {
        struct move *m = &d->moves[i];
        if ((m->to ? m->to : m->from) == dir) {
            move_apply(d, m);
            move_deinit(d, m);
        } else {
            d->moves[kept++] = *m;
        }
    }
    d->n_moves = kept;
    return 0;
}

int sim_disk_list(struct sim_disk *d, const char *path, sim_name_fn fn, void *arg)
{
    struct sim_node *dir = sim_disk_find(d, path);
    if (dir == NULL) return ENOENT;
    if (!dir->is_dir) return ENOTDIR;
    struct entries now = {0}; /* the callback may change the directory */
    entries_copy(d, &now, &dir->names);
    for (size_t i = 0; i < now.n; i++)
        fn(arg, str_of(now.v[i].name), now.v[i].node->is_dir);
    entries_clear(d, &now);
    mem_free(now.v);
    return 0;
}

/* ---- the disk ----------------------------------------------------------------------------------------------- */

struct sim_disk *sim_disk_create(struct rng *rng)
{
    struct sim_disk *d = mem_zalloc(sizeof *d);
    d->rng = rng;
    d->root = node_new(d, true);
    return d;
}

void sim_disk_destroy(struct sim_disk *d)
{
    if (d == NULL) return;
    for (size_t i = 0; i < d->n_moves; i++)
        move_deinit(d, &d->moves[i]);
    sim_node_unref(d, d->root);
    check(d->nodes == NULL); /* else a handle is still open */
    mem_free(d->moves);
    mem_free(d);
}

uint64_t sim_disk_used(const struct sim_disk *d)
{
    uint64_t used = 0;
    for (const struct sim_node *n = d->nodes; n != NULL; n = n->next)
        used += n->view.n;
    return used;
}
