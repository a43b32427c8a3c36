/* Waits until the other side is there, by the middleware's own word: the matched status of each
 * writer and reader. */
#include <inttypes.h>

#include "link.h"
#include "security.h"

/* A reader or a writer of ours and how many it is to be matched with. */
struct end {
  dds_entity_t entity;
  bool is_writer;
  uint32_t wanted;
};

static dds_return_t count_matched(const struct end *end, uint32_t *count)
{
  dds_return_t code;
  if (end->is_writer) {
    dds_publication_matched_status_t status = {.current_count = 0};
    code = dds_get_publication_matched_status(end->entity, &status);
    *count = status.current_count;
  } else {
    dds_subscription_matched_status_t status = {.current_count = 0};
    code = dds_get_subscription_matched_status(end->entity, &status);
    *count = status.current_count;
  }
  return code;
}

static int wait_until_matched(const struct end *end, dds_entity_t waitset,
                              const struct myelin_bench_prepare *prepare)
{
  const uint64_t until_ns = prepare->match_until_ns;
  for (;;) {
    uint32_t count = 0;
    dds_return_t code = count_matched(end, &count);
    if (code < 0)
      return fail("reading the matched status", code, NULL);
    if (count >= end->wanted)
      return 0;
    const uint64_t now_ns = myelin_bench_now_ns();
    if (now_ns >= until_ns) {
      const char *of_whom = end->is_writer ? "readers of this side" : "writers for this side";
      const char *refusal = myelin_cyclonedds_refusal(prepare);
      const char *remedy = "see the other side's log; match_timeout_ms sets the limit";
      return myelin_bench_fail(refusal != NULL ? refusal : remedy, "CycloneDDS: timeout: %" PRIu32 " of %" PRIu32 " %s", count,
                               end->wanted, of_whom);
    }
    code = dds_waitset_wait(waitset, NULL, 0, (dds_duration_t)(until_ns - now_ns));
    if (code < 0)
      return fail("waiting for the other side", code, NULL);
  }
}

/* Watches one end alone: a status of another that nobody reads would end each wait at once. The
 * measured path is to be as it would be without this, hence the mask of before. */
static int match_end(const struct end *end, dds_entity_t waitset,
                     const struct myelin_bench_prepare *prepare)
{
  uint32_t before = 0;
  (void)dds_get_status_mask(end->entity, &before);
  const uint32_t mask =
      end->is_writer ? DDS_PUBLICATION_MATCHED_STATUS : DDS_SUBSCRIPTION_MATCHED_STATUS;
  dds_return_t code = dds_set_status_mask(end->entity, mask);
  if (code >= 0)
    code = dds_waitset_attach(waitset, end->entity, 0);
  if (code < 0)
    return fail("attaching to the waitset", code, NULL);
  const int status = wait_until_matched(end, waitset, prepare);
  (void)dds_waitset_detach(waitset, end->entity);
  (void)dds_set_status_mask(end->entity, before);
  return status;
}

int myelin_cyclonedds_match(struct link *link, const struct myelin_bench_prepare *prepare)
{
  const dds_entity_t some = link->writers != NULL ? link->writers[0] : link->readers[0];
  const dds_entity_t waitset = dds_create_waitset(dds_get_participant(some));
  if (waitset < 0)
    return fail("creating the waitset", waitset, NULL);
  int status = 0;
  for (uint32_t index = 0; status == 0 && index < link->topics; index++) {
    if (link->readers != NULL)
      status = match_end(&(struct end){link->readers[index], false, prepare->others}, waitset, prepare);
    if (status == 0 && link->writers != NULL)
      status = match_end(&(struct end){link->writers[index], true, prepare->others}, waitset, prepare);
  }
  (void)dds_delete(waitset);
  return status;
}
