/*
 * h_status.c: is it alive, is it ready, what is it: cheap answers, on the loop.
 *
 * buildinfo claims a Prometheus version because clients choose their API by it; it must not have a
 * `features` member, or Grafana takes the server for Mimir.
 */
#include <signal.h>
#include <unistd.h>

#include "server/handlers.h"
#include "server/self.h"

#define PROMETHEUS_VERSION "3.5.0" /* the API that is spoken */

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
    answer_data_begin(&x->out);
    buf_str(&x->out.body, STR("{\"version\":\"" PROMETHEUS_VERSION "\",\"revision\":\"" VARVE_REVISION
                              "\",\"branch\":\"main\",\"buildUser\":\"\",\"buildDate\":\"\",\"goVersion\":\"\","
                              "\"application\":\"varve\",\"varveVersion\":\"" VARVE_VERSION "\"}"));
    answer_data_end(&x->out, NULL);
}

/* There is no configuration file. 200, as scripts that changed something elsewhere wait for it. */
void h_status_reload(struct server *s, struct exchange *x)
{
    (void)s;
    answer_text(&x->out, 200, "Nothing to reload: options are read once, at the start.\n");
}

/* The signal comes to the first loop as if from outside; this answer still goes out. */
void h_status_quit(struct server *s, struct exchange *x)
{
    log_info(s->log, "told to quit over HTTP", "path=/-/quit");
    answer_text(&x->out, 200, "Requesting termination... Goodbye!\n");
    kill(getpid(), SIGTERM);
}
