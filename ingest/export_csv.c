/*
 * export_csv.c: samples as rows of comma-separated values, in the columns that were asked for.
 *
 *   format  column,column,...
 *   column  __name__ | label's name | __value__ | __timestamp__[:time]
 *   time    unix_s | unix_ms | unix_ns | rfc3339 | custom:layout       (none: unix_ms)
 *
 * The first row names the columns. Fields are quoted as RFC 4180 has it: in quotes when they hold a comma, a quote or
 * a line end, quotes in them doubled. A layout is a reference time, Mon Jan 2 15:04:05 2006 in UTC, as Go writes it.
 * Native histograms have no row.
 */
#include "ingest/export_internal.h"

#include <stdio.h>

#include "storage/base/num.h"

#define COLUMNS_MAX 1000

/* ---- the format -------------------------------------------------------------------------------------------------- */

static err parse_time(str text, struct csv_column *c)
{
    static const struct {
        const char *name;
        enum csv_kind kind;
    } kinds[] = {{"unix_s", CSV_UNIX_S}, {"unix_ms", CSV_UNIX_MS}, {"unix_ns", CSV_UNIX_NS}, {"rfc3339", CSV_RFC3339}};
    str custom = STR("custom:");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!str_eq(text, str_of(kinds[i].name))) continue;
        c->kind = kinds[i].kind;
        return NULL;
    }
    if (!str_starts_with(text, custom) || text.n == custom.n)
        return err_new(ERR_INVALID,
                       "\"%.*s\" is no form of time; there are unix_s, unix_ms, unix_ns, rfc3339, custom:...",
                       (int)(text.n < 100 ? text.n : 100), text.p);
    c->kind = CSV_LAYOUT;
    c->arg = (str){text.p + custom.n, text.n - custom.n};
    return NULL;
}

static err parse_column(str text, struct csv_column *c)
{
    str time = STR("__timestamp__");
    if (text.n == 0) return err_new(ERR_INVALID, "a column has no name");
    *c = (struct csv_column){.kind = CSV_LABEL, .text = text, .arg = text};
    if (str_eq(text, STR("__value__"))) c->kind = CSV_VALUE;
    if (str_eq(text, time)) c->kind = CSV_UNIX_MS;
    if (!str_starts_with(text, time) || text.n == time.n || text.p[time.n] != ':') return NULL;
    return parse_time((str){text.p + time.n + 1, text.n - time.n - 1}, c);
}

static str trim(str s)
{
    while (s.n > 0 && s.p[0] == ' ')
        s = (str){s.p + 1, s.n - 1};
    while (s.n > 0 && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

err export_csv_parse(str format, struct arena *a, struct csv_column **out, uint32_t *n)
{
    uint32_t commas = 0;
    for (size_t i = 0; i < format.n && commas < COLUMNS_MAX; i++)
        commas += format.p[i] == ',';
    if (commas == COLUMNS_MAX) return err_new(ERR_INVALID, "more than %d columns", COLUMNS_MAX);
    *out = arena_alloc(a, (commas + 1) * sizeof **out);
    *n = 0;
    for (str rest = format;;) {
        const char *comma = rest.n > 0 ? memchr(rest.p, ',', rest.n) : NULL;
        str text = {rest.p, comma == NULL ? rest.n : (size_t)(comma - rest.p)};
        TRY(parse_column(trim(text), &(*out)[(*n)++]));
        if (comma == NULL) return NULL;
        rest = (str){comma + 1, rest.n - text.n - 1};
    }
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
static const char *const weekdays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

struct moment {
    long long year;
    int month, day, weekday, hour, minute, second, ms; /* month 1 .. 12, weekday 0 = Sunday */
};

/* The proleptic Gregorian calendar in eras of 400 years that begin in March. */
static struct moment moment_of(int64_t t)
{
    int64_t ms = ((t % 86400000) + 86400000) % 86400000, day = (t - ms) / 86400000 + 719468;
    int64_t era = (day >= 0 ? day : day - 146096) / 146097, of_era = day - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    return (struct moment){.year = era * 400 + year + (month >= 10),
                           .month = (int)(month < 10 ? month + 3 : month - 9),
                           .day = (int)(of_year - (153 * month + 2) / 5) + 1,
                           .weekday = (int)(((day - 719468 + 4) % 7 + 7) % 7),
                           .hour = (int)(ms / 3600000),
                           .minute = (int)(ms / 60000 % 60),
                           .second = (int)(ms / 1000 % 60),
                           .ms = (int)(ms % 1000)};
}

/* .000 shows that many digits, .999 leaves zeros at the end away; their number may be any. */
static size_t put_fraction(const struct moment *m, str layout, struct buf *out)
{
    size_t digits = 1;
    char kind = layout.p[1], text[4];
    while (digits < layout.n && layout.p[digits] == kind)
        digits++;
    digits--;
    snprintf(text, sizeof text, "%03d", m->ms);
    size_t shown = digits;
    if (kind == '9') {
        if (shown > 3) shown = 3;
        while (shown > 0 && text[shown - 1] == '0')
            shown--;
    }
    if (shown > 0) buf_u8(out, '.');
    for (size_t i = 0; i < shown; i++)
        buf_u8(out, i < 3 ? (uint8_t)text[i] : '0');
    return digits + 1;
}

static bool is_fraction(str layout)
{
    return layout.n > 1 && (layout.p[0] == '.' || layout.p[0] == ',') && (layout.p[1] == '0' || layout.p[1] == '9');
}

/* Elements of a layout: numbers first, then texts. */
enum element {
    YEAR,
    YEAR_2,
    MONTH,
    DAY,
    HOUR,
    HOUR_12,
    MINUTE,
    SECOND,
    MONTH_NAME,
    WEEKDAY_NAME,
    HALF,
    HALF_LOWER,
    ZONE
};

/* Longer ones before those they begin with. */
static const struct {
    const char *text;
    enum element what;
    int width;        /* of a number, filled up with zeros; of a name: letters, 0 = all */
    const char *zone; /* ZONE: how UTC looks */
} elements[] = {{"2006", YEAR, 4, NULL},
                {"January", MONTH_NAME, 0, NULL},
                {"Jan", MONTH_NAME, 3, NULL},
                {"Monday", WEEKDAY_NAME, 0, NULL},
                {"Mon", WEEKDAY_NAME, 3, NULL},
                {"MST", ZONE, 0, "UTC"},
                {"Z07:00", ZONE, 0, "Z"},
                {"Z0700", ZONE, 0, "Z"},
                {"-07:00", ZONE, 0, "+00:00"},
                {"-0700", ZONE, 0, "+0000"},
                {"01", MONTH, 2, NULL},
                {"02", DAY, 2, NULL},
                {"03", HOUR_12, 2, NULL},
                {"04", MINUTE, 2, NULL},
                {"05", SECOND, 2, NULL},
                {"06", YEAR_2, 2, NULL},
                {"15", HOUR, 2, NULL},
                {"PM", HALF, 0, NULL},
                {"pm", HALF_LOWER, 0, NULL},
                {"1", MONTH, 1, NULL},
                {"2", DAY, 1, NULL},
                {"3", HOUR_12, 1, NULL},
                {"4", MINUTE, 1, NULL},
                {"5", SECOND, 1, NULL}};

static int number_of(const struct moment *m, enum element what)
{
    const int numbers[] = {[YEAR] = (int)m->year, [YEAR_2] = (int)(m->year % 100),
                           [MONTH] = m->month,    [DAY] = m->day,
                           [HOUR] = m->hour,      [HOUR_12] = m->hour % 12 == 0 ? 12 : m->hour % 12,
                           [MINUTE] = m->minute,  [SECOND] = m->second};
    return numbers[what];
}

static str text_of(const struct moment *m, enum element what, const char *zone)
{
    if (what == MONTH_NAME) return str_of(months[m->month - 1]);
    if (what == WEEKDAY_NAME) return str_of(weekdays[m->weekday]);
    if (what == HALF) return m->hour < 12 ? STR("AM") : STR("PM");
    if (what == HALF_LOWER) return m->hour < 12 ? STR("am") : STR("pm");
    return str_of(zone);
}

static void put_element(const struct moment *m, size_t i, struct buf *out)
{
    int width = elements[i].width;
    if (elements[i].what <= SECOND) {
        buf_printf(out, "%0*d", width, number_of(m, elements[i].what));
        return;
    }
    str text = text_of(m, elements[i].what, elements[i].zone);
    buf_str(out, (str){text.p, width > 0 ? (size_t)width : text.n});
}

/* Bytes of the layout used. */
static size_t put_next(const struct moment *m, str layout, struct buf *out)
{
    if (is_fraction(layout)) return put_fraction(m, layout, out);
    if (str_starts_with(layout, STR("_2"))) { /* a day with a blank before it */
        buf_printf(out, "%2d", m->day);
        return 2;
    }
    for (size_t i = 0; i < ARRAY_LEN(elements); i++) {
        str text = str_of(elements[i].text);
        if (!str_starts_with(layout, text)) continue;
        put_element(m, i, out);
        return text.n;
    }
    buf_u8(out, (uint8_t)layout.p[0]);
    return 1;
}

static void put_layout(int64_t t, str layout, struct buf *out)
{
    struct moment m = moment_of(t);
    while (layout.n > 0) {
        size_t used = put_next(&m, layout, out);
        layout = (str){layout.p + used, layout.n - used};
    }
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static bool needs_quotes(str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == ',' || s.p[i] == '"' || s.p[i] == '\n' || s.p[i] == '\r') return true;
    return false;
}

static void put_field(str s, struct buf *out)
{
    if (!needs_quotes(s)) {
        buf_str(out, s);
        return;
    }
    buf_u8(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"') buf_u8(out, '"');
        buf_u8(out, (uint8_t)s.p[i]);
    }
    buf_u8(out, '"');
}

static void put_time(const struct csv_column *c, int64_t t, struct buf *out)
{
    if (c->kind == CSV_UNIX_S) {
        buf_printf(out, "%lld", (long long)(t >= 0 ? t / 1000 : -((999 - t) / 1000)));
    } else if (c->kind == CSV_UNIX_MS) {
        buf_printf(out, "%lld", (long long)t);
    } else if (c->kind == CSV_UNIX_NS) {
        buf_printf(out, "%lld", (long long)t);
        if (t != 0) buf_str(out, STR("000000")); /* digits appended: it may be beyond 64 bits */
    } else {
        struct buf text = {0};
        put_layout(t, c->kind == CSV_RFC3339 ? STR("2006-01-02T15:04:05.999Z07:00") : c->arg, &text);
        put_field(buf_as_str(&text), out);
        buf_deinit(&text);
    }
}

static void put_value(double v, struct buf *out)
{
    char *to = (char *)buf_reserve(out, NUM_DOUBLE_MAX);
    if (to) out->n += num_format_double(v, to);
}

static void csv_begin(struct exporting *x)
{
    for (uint32_t i = 0; i < x->n_csv; i++) {
        if (i > 0) buf_u8(&x->out, ',');
        put_field(x->csv[i].text, &x->out);
    }
    buf_u8(&x->out, '\n');
}

static err csv_samples(struct exporting *x)
{
    for (size_t k = 0; k < x->n; k++) {
        for (uint32_t i = 0; i < x->n_csv; i++) {
            const struct csv_column *c = &x->csv[i];
            if (i > 0) buf_u8(&x->out, ',');
            if (c->kind == CSV_LABEL)
                put_field(labels_get(&x->labels, c->arg), &x->out);
            else if (c->kind == CSV_VALUE)
                put_value(x->v[k], &x->out);
            else
                put_time(c, x->t[k], &x->out);
        }
        buf_u8(&x->out, '\n');
    }
    return NULL;
}

const struct export_form export_form_csv = {.begin = csv_begin, .samples = csv_samples};
