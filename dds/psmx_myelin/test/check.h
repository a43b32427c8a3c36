/* Ends the program with a message if a call fails. */
#ifndef PSMX_MYELIN_TEST_CHECK_H
#define PSMX_MYELIN_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "dds/dds.h"

static inline dds_return_t check(dds_return_t code, const char *what) {
  if (code < 0) {
    fprintf(stderr, "%s: %s\n", what, dds_strretcode(code));
    exit(1);
  }
  return code;
}
#define CHECK(call) check(call, #call)

#endif
