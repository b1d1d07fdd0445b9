/*
 * h_info.c: how this server was started and how it is: status/config, flags, runtimeinfo, walreplay.
 *
 * Shapes are Prometheus's, contents Varve's own. There is no configuration file: `config` gives the
 * options in effect as YAML, one mapping for each word before a flag's first dot. On the loop.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "server/handlers.h"
#include "server/machine.h"

/* ---- options ------------------------------------------------------------------------------------------------- */

static str group_of(size_t i)
{
    str flag = config_option_flag(i);
    const char *dot = memchr(flag.p, '.', flag.n);
    return (str){flag.p, dot != NULL ? (size_t)(dot - flag.p) : 0};
}

/* A JSON string is a YAML one. */
static void put_yaml_option(const struct config *c, size_t i, struct buf *yaml)
{
    struct buf value = {0};
    str flag = config_option_flag(i);
    size_t skip = group_of(i).n + 1;
    buf_printf(yaml, "  %.*s: ", (int)(flag.n - skip), flag.p + skip);
    if (config_option(c, i, &value)) {
        struct json j;
        json_init(&j, yaml);
        json_str(&j, buf_as_str(&value));
    } else {
        buf_str(yaml, buf_as_str(&value));
    }
    buf_u8(yaml, '\n');
    buf_deinit(&value);
}

static void put_yaml(const struct config *c, struct buf *yaml)
{
    size_t n = config_option_count();
    for (size_t i = 0; i < n; i++) {
        size_t first = 0;
        while (!str_eq(group_of(first), group_of(i)))
            first++;
        if (first < i) continue; /* with the first of its group */
        buf_printf(yaml, "%.*s:\n", STR_ARG(group_of(i)));
        for (size_t k = i; k < n; k++)
            if (str_eq(group_of(k), group_of(i))) put_yaml_option(c, k, yaml);
    }
}

void h_status_config(struct server *s, struct exchange *x)
{
    struct buf yaml = {0};
    struct json j;
    put_yaml(s->config, &yaml);
    answer_data_begin(&x->out);
    json_init(&j, &x->out.body);
    json_object(&j);
    json_key(&j, "yaml");
    json_str(&j, buf_as_str(&yaml));
    json_object_end(&j);
    answer_data_end(&x->out, NULL);
    buf_deinit(&yaml);
}

void h_status_flags(struct server *s, struct exchange *x)
{
    struct buf value = {0};
    struct json j;
    answer_data_begin(&x->out);
    json_init(&j, &x->out.body);
    json_object(&j);
    for (size_t i = 0; i < config_option_count(); i++) {
        buf_clear(&value);
        config_option(s->config, i, &value);
        json_key_str(&j, config_option_flag(i));
        json_str(&j, buf_as_str(&value));
    }
    json_object_end(&j);
    answer_data_end(&x->out, NULL);
    buf_deinit(&value);
}

/* ---- the process --------------------------------------------------------------------------------------------- */

static void put_time(struct json *j, const char *key, int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    char day[32], text[48];
    gmtime_r(&seconds, &tm);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof text, "%s.%03dZ", day, (int)(ms % 1000));
    json_key(j, key);
    json_cstr(j, text);
}

static void put_text(struct json *j, const char *key, const char *text)
{
    json_key(j, key);
    json_cstr(j, text);
}

static void put_number(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_u64(j, v);
}

static void put_retention(struct json *j, int64_t ms)
{
    struct buf text = {0};
    config_print_duration(ms, &text);
    json_key(j, "storageRetention");
    json_str(j, ms > 0 ? buf_as_str(&text) : STR("unlimited"));
    buf_deinit(&text);
}

/* What Go calls goroutines and its limits are here the threads, cores and the memory that budgets come from. */
void h_status_runtimeinfo(struct server *s, struct exchange *x)
{
    char folder[4096] = "", host[256] = "";
    struct machine_usage usage;
    struct json j;
    machine_usage(&usage);
    if (getcwd(folder, sizeof folder) == NULL) folder[0] = '\0';
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    answer_data_begin(&x->out);
    json_init(&j, &x->out.body);
    json_object(&j);
    put_time(&j, "startTime", (int64_t)(usage.start_s * 1e3));
    put_text(&j, "CWD", folder);
    put_text(&j, "hostname", host);
    put_time(&j, "serverTime", s->env->ops->now_ms(s->env));
    json_key(&j, "reloadConfigSuccess");
    json_bool(&j, true);
    put_time(&j, "lastConfigTime", (int64_t)(usage.start_s * 1e3));
    put_number(&j, "corruptionCount", err_corrupt_count());
    put_number(&j, "goroutineCount", usage.threads);
    put_number(&j, "GOMAXPROCS", machine_cores());
    put_number(&j, "GOMEMLIMIT", s->config->memory_limit);
    put_text(&j, "GOGC", "");
    put_text(&j, "GODEBUG", "");
    put_retention(&j, s->config->retention_ms);
    json_object_end(&j);
    answer_data_end(&x->out, NULL);
}

/* How far the replay is nobody counts; that it runs is told by /-/ready. */
void h_status_walreplay(struct server *s, struct exchange *x)
{
    (void)s;
    answer_data_begin(&x->out);
    buf_str(&x->out.body, STR("{\"min\":0,\"max\":0,\"current\":0}"));
    answer_data_end(&x->out, NULL);
}
