"""Reads and writes recordings with the readers of others, for the tests.

read.py messages FILE           each message, by the reader that seeks and by the one that does not
read.py values FILE             each message's values, by mcap-ros2-support and by rosbags
read.py write FILE COMPRESSION  a file of 1000 messages
read.py write-unchunked FILE COMPRESSION  the same, of messages that are in no chunk
"""

import json
import sys

from mcap.reader import NonSeekingReader, SeekingReader
from mcap.writer import CompressionType, Writer


def messages(path):
    def lines(reader):
        return [
            f"{channel.topic} {message.sequence} {message.log_time} {message.publish_time} {message.data.hex()}"
            for _, channel, message in reader.iter_messages()
        ]

    with open(path, "rb") as file:
        by_seeking = lines(SeekingReader(file, validate_crcs=True))
    with open(path, "rb") as file:
        in_order = lines(NonSeekingReader(file, validate_crcs=True))
    assert by_seeking == in_order
    print("\n".join(by_seeking))


def plain(value):
    """Numbers and lists, of whatever a reader makes."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (bool, int, float)):
        return value
    names = getattr(value, "__slots__", None) or list(vars(value))
    return {name: plain(getattr(value, name)) for name in names if not name.startswith("_")}


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
        "values": values,
        "write": write,
        "write-unchunked": lambda path, compression: write(path, compression, use_chunking=False),
    }
    verbs[sys.argv[1]](*sys.argv[2:])
