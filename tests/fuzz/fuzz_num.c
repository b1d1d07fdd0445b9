/* Fuzzes num_parse_double against strtod, and printing of what was read. */
#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/num.h"

#include <math.h>
#include <stdlib.h>

static void check_printing(double v)
{
    char text[NUM_DOUBLE_MAX];
    double back;
    size_t n = num_format_double(v, text);
    check(n <= sizeof text);
    check(num_parse_double((str){text, n}, &back));
    check(f64_bits(back) == f64_bits(v) || (isnan(back) && isnan(v)));
    n = num_format_double_short(v, text);
    check(num_parse_double((str){text, n}, &back));
    check(f64_bits(back) == f64_bits(v) || (isnan(back) && isnan(v)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *exact = mem_dup(data, n), *text = mem_dup_str((str){exact, n}); /* `exact`: no NUL to lean on */
    double v;
    int64_t i;
    if (num_parse_double((str){exact, n}, &v)) {
        char *end;
        double expected = strtod(text, &end);
        check(end == text + n);
        check(isnan(v) ? isnan(expected) : f64_bits(v) == f64_bits(expected));
        check_printing(v);
    }
    if (num_parse_i64((str){exact, n}, &i)) check(i == strtoll(text, NULL, 10));
    if (n >= 8) {
        memcpy(&v, data, sizeof v);
        check_printing(v);
    }
    mem_free(text);
    mem_free(exact);
    return 0;
}
