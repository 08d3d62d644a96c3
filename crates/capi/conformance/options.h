/* The options of libsrt: number, name, type. */
#ifndef PUNCTUAL_CONFORMANCE_OPTIONS_H
#define PUNCTUAL_CONFORMANCE_OPTIONS_H

#include "common.h"

enum kind { BOOLEAN, NUMBER, WIDE, TEXT, LINGER };

struct option {
    int number;
    const char *name;
    enum kind kind;
};

/* Every number from 0 to 63; those without an option have the name "unused". */
extern const struct option options[64];

/* The option's value as a text, or "-1" with the last error. */
void get_row(const char *situation, SRTSOCKET s, const struct option *option);
const char *option_text(SRTSOCKET s, const struct option *option);

#endif
