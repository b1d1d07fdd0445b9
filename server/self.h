/*
 * self.h: what the server measures about itself beside what the rooms count: requests, process, storage.
 */
#ifndef VARVE_SERVER_SELF_H
#define VARVE_SERVER_SELF_H

#include "server/exchange.h"
#include "server/server.h"

struct self;

struct self *self_create(struct server *s); /* registers in s->metrics */
void self_destroy(struct self *self);
/* Once the storage is open: its gauges. */
void self_register_storage(struct self *self);

/* The loops: an answer is being sent. */
void self_observe(struct self *self, const struct exchange *x);
/* Appends the text exposition. */
void self_print(struct self *self, struct buf *out);

#endif
