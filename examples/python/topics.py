"""Prints a sample of every topic of a running robot: this program knows none of their types."""

import sys

import myelin

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
node = myelin.Node("topics")
topics = {endpoint.topic for kind, endpoint in node.discover("*").changes() if endpoint.is_publisher}
for name in sorted(topics):
    with node.any_topic(name, transient_local=1).subscriber() as subscriber:
        sample = subscriber.receive(timeout=seconds)
        print(name, "is silent" if sample is None else sample.value)
