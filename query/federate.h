/* federate.h: the rows of a federation answer and their two printers. Private to the room's federate*.c. */
#ifndef VARVE_QUERY_FEDERATE_H
#define VARVE_QUERY_FEDERATE_H

#include "query/query.h"

struct federated {
    struct labels labels;
    str name; /* of the metric */
    int64_t t;
    double v;
    str hist; /* a histogram's blob; n = 0: v is the value */
};

/* Rows come by name; of one name, floats before histograms. Histograms can't be written as text and are left out. */
void federate_put_text(const struct federated *rows, size_t n, bool utf8, struct buf *out);
err federate_put_protobuf(const struct federated *rows, size_t n, bool utf8, struct buf *out)
    __attribute__((warn_unused_result));

/* A name as the format has it: bytes that old readers don't know become '_', unless they may be UTF-8. */
str federate_name(str name, bool utf8, struct arena *a);
/* Row k begins another family than the row before. */
bool federate_begins_family(const struct federated *rows, size_t k);

#endif
