/* Reads a recording in C. Arguments: the path. Prints the messages of the topic `imu`. */
#include <inttypes.h>
#include <myelin_bag.h>
#include <stdio.h>

int main(int count, char **arguments) {
  myelin_bag_reader *reader;
  myelin_bag_messages *messages;
  const char *topics[] = {"imu"};
  struct myelin_bag_selection selection = MYELIN_BAG_INIT(myelin_bag_selection);
  struct myelin_bag_message message = MYELIN_BAG_INIT(myelin_bag_message);
  int code;
  (void)count;
  selection.topics = topics;
  selection.topic_count = 1;
  if (myelin_bag_reader_open(arguments[1], &reader) != MYELIN_BAG_OK ||
      myelin_bag_reader_messages(reader, &selection, &messages) != MYELIN_BAG_OK)
    return fprintf(stderr, "%s\n", myelin_bag_error_message()), 1;
  while ((code = myelin_bag_messages_next(messages, &message)) == MYELIN_BAG_OK)
    printf("%" PRIu64 " %zu\n", message.sequence, message.sample_bytes);
  if (code != MYELIN_BAG_NOTHING) return fprintf(stderr, "%s\n", myelin_bag_error_message()), 1;
  selection.size = 3;
  if (myelin_bag_reader_messages(reader, &selection, &messages) != MYELIN_BAG_ERROR_SETTING) return 2;
  if (myelin_bag_reader_open(arguments[1], NULL) != MYELIN_BAG_ERROR_SETTING) return 3;
  if (myelin_player_play(NULL) != MYELIN_BAG_ERROR_SETTING) return 4;
  myelin_bag_messages_close(messages);
  return myelin_bag_reader_close(reader);
}
