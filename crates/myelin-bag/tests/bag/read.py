"""Reads and writes recordings with the readers of others, for the tests.

read.py messages FILE           each message, by the reader that seeks and by the one that does not
read.py values FILE             each message's values, by mcap-ros2-support and by rosbags
read.py serve                   for each path on stdin: its messages as above, then `= complete` or `= cut`
read.py write FILE COMPRESSION  a file of 1000 messages
read.py write-unchunked FILE COMPRESSION  the same, of messages that are in no chunk
"""

import json
import struct
import sys

from mcap.exceptions import EndOfFile
from mcap.reader import NonSeekingReader, SeekingReader
from mcap.records import Channel, Message
from mcap.stream_reader import StreamReader
from mcap.writer import CompressionType, Writer


def line(topic, message):
    return f"{topic} {message.sequence} {message.log_time} {message.publish_time} {message.data.hex()}"


def messages(path):
    def lines(reader):
        return [line(channel.topic, message) for _, channel, message in reader.iter_messages()]

    with open(path, "rb") as file:
        by_seeking = lines(SeekingReader(file, validate_crcs=True))
    with open(path, "rb") as file:
        in_order = lines(NonSeekingReader(file, validate_crcs=True))
    assert by_seeking == in_order
    print("\n".join(by_seeking))


def serve():
    """Of a file that was cut, whatever is complete."""
    for path in sys.stdin:
        path, topics, lines, end = path.strip(), {}, [], "= complete"
        with open(path, "rb") as file:
            try:
                for record in StreamReader(file, validate_crcs=True).records:
                    if isinstance(record, Channel):
                        topics[record.id] = record.topic
                    elif isinstance(record, Message):
                        lines.append(line(topics[record.channel_id], record))
            except (EndOfFile, struct.error):
                end = "= cut"
        if end == "= complete":
            with open(path, "rb") as file:
                by_seeking = [line(it.topic, message) for _, it, message in SeekingReader(file).iter_messages()]
            assert sorted(by_seeking) == sorted(lines), path
        print(*lines, end, sep="\n", flush=True)


def plain(value):
    """Numbers and lists, of whatever a reader makes; without constants."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (bool, int, float, str)):
        return value
    names = getattr(value, "__slots__", None) or list(vars(value))
    return {name: plain(getattr(value, name)) for name in names if name[0] != "_" and not name.isupper()}


def values(path):
    from mcap_ros2.decoder import DecoderFactory
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    with open(path, "rb") as file:
        reader = SeekingReader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        for schema, _, message, decoded in reader.iter_decoded_messages():
            store = get_typestore(Stores.EMPTY)
            store.register(get_types_from_msg(schema.data.decode(), schema.name))
            other = store.deserialize_cdr(message.data, schema.name)
            one, other = plain(decoded), plain(other)
            other.pop("__msgtype__", None)
            assert one == other, (one, other)
            # Written again, a sample is what it was: nothing was moved.
            again = bytes(store.serialize_cdr(store.deserialize_cdr(message.data, schema.name), schema.name))
            assert again == message.data, (again.hex(), message.data.hex())
            print(json.dumps(one))


def write(path, compression, use_chunking=True):
    with open(path, "wb") as file:
        writer = Writer(
            file, chunk_size=5000, compression=CompressionType[compression.upper()], use_chunking=use_chunking
        )
        writer.start()
        schema = writer.register_schema("a/msg/B", "ros2msg", b"uint8 a")
        channel = writer.register_channel("/topic", "cdr", schema)
        for sequence in range(1000):
            writer.add_message(channel, sequence, str(sequence).encode(), sequence, sequence)
        writer.finish()


if __name__ == "__main__":
    verbs = {
        "messages": messages,
        "serve": serve,
        "values": values,
        "write": write,
        "write-unchunked": lambda path, compression: write(path, compression, use_chunking=False),
    }
    verbs[sys.argv[1]](*sys.argv[2:])
