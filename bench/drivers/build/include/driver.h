/* What the tables of drivers (`src/driver.c`) share. The build defines MISSING, the reason, if the middleware is
 * not there; then the functions of the adaptor are not there either, and PRESENT replaces them by NULL. */
#ifndef MYELIN_DRIVER_H
#define MYELIN_DRIVER_H

#include "myelin_bench_kit.h"

#ifdef MISSING
#define PRESENT(function) NULL
#undef VERSION
#define VERSION NULL
#else
#define MISSING NULL
#define PRESENT(function) (function)
#endif

/* The members that every table of a driver has; `systems` is its array. */
#define DRIVER_OF(systems_, link_) \
  .abi = MYELIN_BENCH_ABI, MYELIN_BENCH_SIZE(driver), .systems = (systems_), \
  .system_count = sizeof(systems_) / sizeof *(systems_), .link = PRESENT(&(link_))

/* The program of a driver: its table `driver`, of these members, and main. */
#define DRIVER_MAIN(...) \
  static const struct myelin_bench_driver driver = {__VA_ARGS__}; \
  int main(void) { return myelin_bench_main(&driver); }

#endif
