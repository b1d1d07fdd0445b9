/*
 * h_federate.c: /federate, on a query worker.
 *
 * Answers are in an exposition format, so errors are plain text; without match[] nothing is asked for and
 * nothing comes.
 */
#include <stdio.h>

#include "server/accept.h"
#include "server/args.h"
#include "server/handlers.h"

static err federate(struct server *s, struct exchange *x, struct match_sets *sets)
{
    TRY(args_match(x, false, sets));
    struct accept format = accept_exposition(http_header(&x->in, HEADER_ACCEPT));
    struct federate_request rq = {.match = sets, .now_ms = s->env->ops->now_ms(s->env), .canceled = &x->canceled};
    rq.protobuf = format.protobuf;
    rq.utf8 = format.utf8;
    answer_reset(&x->out);
    x->out.status = 200;
    x->out.content_type = accept_content_type(format);
    return query_federate(s->engine, &rq, &x->out.body);
}

void h_federate(struct server *s, struct exchange *x)
{
    struct match_sets sets = {0};
    err e = federate(s, x, &sets);
    match_sets_deinit(&sets);
    if (e == NULL) return;
    char text[600];
    snprintf(text, sizeof text, "%s\n", err_message(e));
    answer_text(&x->out, answer_status_of(err_code(e)), text);
    err_free(e);
}
