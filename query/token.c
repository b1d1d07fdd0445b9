/*
 * token.c: what a token may stand for, and its name in messages.
 *
 * PromQL has no reserved words: which keywords may also name a metric, a label or a function depends on
 * the place, and the lists here are those of Prometheus's grammar. Stateless: any thread.
 */
#include "query/lexer.h"

#include "query/literal.h"

bool token_is_metric_name(const struct token *t)
{
    switch (t->kind) {
    case TOKEN_OPERATOR:
        return binary_op_is_set((enum binary_op)t->op);
    case TOKEN_IDENTIFIER:
    case TOKEN_METRIC:
    case TOKEN_AGGREGATOR:
    case TOKEN_ANCHORED:
    case TOKEN_BY:
    case TOKEN_FILL:
    case TOKEN_FILL_LEFT:
    case TOKEN_FILL_RIGHT:
    case TOKEN_OFFSET:
    case TOKEN_SMOOTHED:
    case TOKEN_WITHOUT:
        return true;
    default:
        return t->kind >= TOKEN_END;
    }
}

bool token_is_label_name(const struct token *t)
{
    switch (t->kind) {
    case TOKEN_OPERATOR:
        return binary_op_is_set((enum binary_op)t->op) || t->op == OP_ATAN2;
    case TOKEN_BOOL:
    case TOKEN_GROUP_LEFT:
    case TOKEN_GROUP_RIGHT:
    case TOKEN_IGNORING:
    case TOKEN_ON:
        return true;
    case TOKEN_WITHOUT:
        return false;
    default:
        return token_is_metric_name(t);
    }
}

bool token_is_function_name(const struct token *t)
{
    return t->kind == TOKEN_IDENTIFIER || t->kind >= TOKEN_END;
}

void token_describe(const struct token *t, str text, struct buf *out)
{
    str word = token_text(t, text);
    switch (t->kind) {
    case TOKEN_EOF:
        buf_str(out, STR("end of input"));
        return;
    case TOKEN_OPERATOR:
        buf_printf(out, "<op:%s>", binary_op_text((enum binary_op)t->op));
        return;
    case TOKEN_AGGREGATOR:
        buf_printf(out, "<aggr:%s>", aggregate_op_text((enum aggregate_op)t->op));
        return;
    case TOKEN_IDENTIFIER:
        buf_str(out, STR("identifier "));
        break;
    case TOKEN_METRIC:
        buf_str(out, STR("metric identifier "));
        break;
    case TOKEN_NUMBER:
        buf_str(out, STR("number "));
        break;
    case TOKEN_DURATION:
        buf_str(out, STR("duration "));
        break;
    case TOKEN_STRING:
        buf_str(out, STR("string "));
        break;
    default:
        if (t->kind >= TOKEN_ANCHORED && t->kind <= TOKEN_WITHOUT) {
            buf_printf(out, "<%.*s>", STR_ARG(word));
            return;
        }
        break;
    }
    literal_print_string(word, out);
}
