"""As network_settings.c, in Python."""

import sys

import myelin

lane, datagram_bytes = int(sys.argv[1]) > 0, int(sys.argv[2])
node = myelin.Node("publisher", network=True, bulk_lane=lane, datagram_bytes=datagram_bytes)
publisher = node.topic("large", reliable=60).publisher()
assert publisher.wait_for_match(1, 60)
while publisher.matched > 0:
    publisher.publish(bytes(64 << 10))
publisher.close()
node.close()
