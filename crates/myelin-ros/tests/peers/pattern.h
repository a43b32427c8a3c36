/* The content of message `n`, the same in C, C++ and Rust (tests/support/pattern.rs): every byte of it can
 * be checked; lengths, and so alignments, differ from one message to the next. */
#ifndef MYELIN_ROS_PATTERN_H
#define MYELIN_ROS_PATTERN_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

enum {
  IMAGE_WIDTH = 1440,
  IMAGE_HEIGHT = 1080,
  POINT_STEP = 16,
  POINTS = 65536,
  TEXT_BYTES = 32,
  /* Between best-effort messages, of which those are lost that come before the match. */
  PERIOD_MS = 5,
  /* Sent until the test says that it has come, and from how often. */
  PREAMBLE = 1000,
  PREAMBLE_PERIOD_MS = 50
};

static const char FRAME[] = "abcdefgh";

/* Characters of FRAME in message `n`. */
static inline size_t frame_length(uint32_t n)
{
  return n % sizeof(FRAME);
}

static inline uint8_t octet_at(uint32_t n, size_t i)
{
  return (uint8_t)(n * 31 + i * 7 + (i >> 8));
}

static inline double real_at(uint32_t n, uint32_t i)
{
  return 1000.0 * n + i + 0.25;
}

/* Whether the test has said something, or closed our input, within the period of preambles. */
static inline int is_told(void)
{
  struct pollfd input = {0, POLLIN, 0};
  return poll(&input, 1, PREAMBLE_PERIOD_MS) > 0;
}

static inline int32_t seconds_of(uint32_t n)
{
  return (int32_t)(1700000000 + n);
}

#endif
