/*
 * h_status.c: is it alive, is it ready, what is it: cheap answers, on the loop.
 *
 * buildinfo claims a Prometheus version because clients choose their API by it; it must not have a
 * `features` member, or Grafana takes the server for Mimir. Rules and alerts are empty lists: there
 * are none here, and the calls have to exist.
 */
#include "server/handlers.h"
#include "server/self.h"

#define PROMETHEUS_VERSION "3.5.0" /* the API that is spoken */

static void data_literal(struct exchange *x, str json)
{
    answer_data_begin(&x->out);
    buf_str(&x->out.body, json);
    answer_data_end(&x->out, NULL);
}

void h_status_ready(struct server *s, struct exchange *x)
{
    if (server_is_ready(s)) {
        answer_text(&x->out, 200, "Varve is ready.\n");
        return;
    }
    bool starting = atomic_load(&s->phase) == PHASE_STARTING;
    answer_text(&x->out, 503, starting ? "Varve is starting: the log is being replayed.\n" : "Varve is stopping.\n");
    x->out.retry_after_s = 1;
}

void h_status_healthy(struct server *s, struct exchange *x)
{
    (void)s;
    answer_text(&x->out, 200, "Varve is healthy.\n");
}

void h_status_health(struct server *s, struct exchange *x)
{
    if (server_is_ready(s))
        answer_text(&x->out, 200, "OK");
    else
        h_status_ready(s, x);
}

void h_status_metrics(struct server *s, struct exchange *x)
{
    x->out.status = 200;
    x->out.content_type = ANSWER_METRICS;
    self_print(s->self, &x->out.body);
}

void h_status_buildinfo(struct server *s, struct exchange *x)
{
    (void)s;
    data_literal(x, STR("{\"version\":\"" PROMETHEUS_VERSION "\",\"revision\":\"" VARVE_REVISION
                        "\",\"branch\":\"main\",\"buildUser\":\"\",\"buildDate\":\"\",\"goVersion\":\"\","
                        "\"application\":\"varve\",\"varveVersion\":\"" VARVE_VERSION "\"}"));
}

void h_status_rules(struct server *s, struct exchange *x)
{
    (void)s;
    data_literal(x, STR("{\"groups\":[]}"));
}

void h_status_alerts(struct server *s, struct exchange *x)
{
    (void)s;
    data_literal(x, STR("{\"alerts\":[]}"));
}
