/*
 * accept.h: which exposition format a scraper wants, out of its Accept header. Pure; any thread.
 */
#ifndef VARVE_SERVER_ACCEPT_H
#define VARVE_SERVER_ACCEPT_H

#include "storage/base/types.h"

struct accept {
    bool protobuf; /* delimited MetricFamily messages; else text */
    bool utf8;     /* names may be UTF-8 */
};

/* The known format with the highest q, the first of equals; text of the old kind if none is known. */
struct accept accept_exposition(str header);
/* Content-Type of an answer in that format; static. */
const char *accept_content_type(struct accept a);

#endif
