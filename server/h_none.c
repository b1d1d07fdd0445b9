/*
 * h_none.c: well-formed answers about what a scraper or a rule engine would have: there is none here.
 *
 * Clients ask for these when they start (Grafana for rules, the Prometheus UI for targets, Thanos for
 * both) and take a 404 for another kind of server. Arguments that Prometheus would refuse are refused.
 * On the loop.
 */
#include "server/args.h"
#include "server/handlers.h"

static void data(struct exchange *x, str json)
{
    answer_data_begin(&x->out);
    buf_str(&x->out.body, json);
    answer_data_end(&x->out, NULL);
}

/* Empty, or one of the words. */
static err one_of(const struct exchange *x, const char *name, const char *const *words)
{
    str text = args_text(x, name);
    if (text.n == 0) return NULL;
    for (; *words != NULL; words++)
        if (str_eq(text, str_of(*words))) return NULL;
    return err_new(ERR_INVALID, "invalid parameter \"%s\": not supported value \"%.*s\"", name,
                   (int)(text.n < 100 ? text.n : 100), text.p);
}

void h_none_rules(struct server *s, struct exchange *x)
{
    (void)s;
    uint64_t limit = 0;
    err e = one_of(x, "type", (const char *const[]){"alert", "record", NULL});
    if (e == NULL) e = args_count(x, "group_limit", &limit);
    if (e != NULL)
        answer_err(&x->out, e);
    else
        data(x, STR("{\"groups\":[]}"));
}

void h_none_alerts(struct server *s, struct exchange *x)
{
    (void)s;
    data(x, STR("{\"alerts\":[]}"));
}

void h_none_alertmanagers(struct server *s, struct exchange *x)
{
    (void)s;
    data(x, STR("{\"activeAlertmanagers\":[],\"droppedAlertmanagers\":[]}"));
}

void h_none_targets(struct server *s, struct exchange *x)
{
    (void)s;
    data(x, STR("{\"activeTargets\":[],\"droppedTargets\":[],\"droppedTargetCounts\":{}}"));
}

void h_none_target_metadata(struct server *s, struct exchange *x)
{
    (void)s;
    uint64_t limit = 0;
    err e = args_count(x, "limit", &limit);
    if (e != NULL)
        answer_err(&x->out, e);
    else
        data(x, STR("[]"));
}

void h_none_scrape_pools(struct server *s, struct exchange *x)
{
    (void)s;
    data(x, STR("{\"scrapePools\":[]}"));
}

void h_none_notifications(struct server *s, struct exchange *x)
{
    (void)s;
    data(x, STR("[]"));
}
