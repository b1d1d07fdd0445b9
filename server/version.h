/*
 * version.h: what this program is and what it is made of.
 */
#ifndef VARVE_SERVER_VERSION_H
#define VARVE_SERVER_VERSION_H

#include "storage/base/buf.h"

/* Appends version, revision, flavour, architecture, compiler, libc, libraries with their versions and the
 * processor's features: lines for people, whose first is "varve VERSION (REVISION)". */
void version_print(struct buf *out);

/* The same as one JSON object and a newline. */
void version_print_json(struct buf *out);

#endif
