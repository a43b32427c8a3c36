/* The checks of the test programs: the first failure ends the program, and prints where and why. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "myelin.h"

/* Nothing here takes nearly so long. */
#define WATCHDOG_NS 60000000000u

#define CHECK(condition)                                                                  \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, myelin_error_message()); \
      exit(1);                                                                            \
    }                                                                                     \
  } while (0)
#define OK(call) CHECK((call) == MYELIN_OK)
/* A call fails with this code, and its message has this text in it. */
#define FAILS(call, code, text)                         \
  do {                                                  \
    CHECK((call) == (code));                            \
    CHECK(strstr(myelin_error_message(), text) != NULL); \
  } while (0)

struct imu {
  uint64_t stamp_ns;
  double acceleration[3];
  float temperature;
  uint8_t _pad[4];
};

#endif
