/* What the two halves of the adaptor share: link.c opens, publishes and takes, match.c waits for
 * the other side. */
#ifndef MYELIN_CYCLONEDDS_LINK_H
#define MYELIN_CYCLONEDDS_LINK_H

#include "dds/dds.h"
#include "myelin_bench_kit.h"

struct link {
  dds_entity_t domain;
  uint32_t topics;
  bool is_reliable_stream; /* of ping: its writers exist and wait for the last acknowledgement */
  dds_entity_t *writers; /* one for each topic; NULL for pong of a stream */
  dds_entity_t *readers; /* one for each topic; NULL for ping of a stream */
  dds_entity_t writer;   /* the selected one of the writers */
  dds_entity_t waitset;  /* over the readers' conditions; each brings its reader's index */
  dds_attach_t *ready;   /* indices of readers that may have something */
  uint32_t ready_count;
  uint32_t ready_next;
  size_t message_bytes; /* 8 + N */
  size_t type_bytes;    /* sizeof of the type: message_bytes rounded up to 8 */
  void *loan;           /* of the writer, between loan and publish_loan */
  void *received;       /* type_bytes; where take copies to; NULL: it reads in place */
  void *lent;           /* between take and release, by `lender`, a reader; else NULL */
  dds_entity_t lender;
  void *staging;        /* type_bytes; NULL unless the type has padding, see publish */
};

/* Reports `what` and, if it is an error code of DDS, its text. Returns -1. */
int myelin_cyclonedds_fail(const char *what, dds_return_t code, const char *remedy);
#define fail myelin_cyclonedds_fail

/* Returns 0 when every writer has its readers and every reader its writers. */
int myelin_cyclonedds_match(struct link *link, const struct myelin_bench_prepare *prepare);

#endif /* MYELIN_CYCLONEDDS_LINK_H */
