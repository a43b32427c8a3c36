"""Driver of `myelin bench` for Myelin from Python: the systems of `myelin.shm-*`, implemented with
the module `myelin`. `main.rs` runs it."""

import json
import os
import sys

import myelin
import myelin_bench_kit


class Link:
    """One role of a round trip, or of a stream."""

    def __init__(self, prepare):
        # The kit names the roles in lower case. A stream only goes from ping to pong.
        self.prepare, self.is_ping = prepare, prepare["role"] == "ping"
        self.is_one_way = prepare.get("workload", "roundtrip") != "roundtrip"
        self.publisher = self.subscriber = None
        with myelin.Node(f"bench-{prepare['run']}", domain=prepare["domain"], network=False) as node:
            if self.is_ping or not self.is_one_way:
                self.publisher = self.topic(node, self.is_ping).publisher()
            if not self.is_ping or not self.is_one_way:
                wait = prepare["system"].partition(".shm-")[2]
                publishers = max(prepare.get("publishers", 1), 16)
                topic = self.topic(node, not self.is_ping)
                self.subscriber = topic.subscriber(wait=wait, publishers_max=publishers)
        self.match()

    def topic(self, node, of_ping):
        settings = {}
        if self.is_one_way:
            settings["depth"] = self.prepare["depth"]
            if self.prepare["reliability"] == "reliable":
                settings["reliable_or_fail"] = self.prepare["reply_timeout_ns"] * 1e-9
        return node.topic(f"bench/{self.prepare['run']}/{'ping' if of_ping else 'pong'}", **settings)

    def match(self):
        limit = self.prepare["match_timeout_ns"] * 1e-9
        for end, others in ((self.publisher, "subscribers"), (self.subscriber, "publishers")):
            count = self.prepare[others] if self.is_one_way else 1
            if end is not None and not end.wait_for_match(count, limit):
                raise TimeoutError("the other role was not found in time: see its log")

    def loan(self, length):
        self.lent = self.publisher.loan(length)
        self.memory = memoryview(self.lent)
        return self.memory

    def publish_loan(self):
        self.memory.release()
        self.lent.publish()

    def take(self, until_ns):
        # As in user code, one call waits and takes.
        sample = self.subscriber.receive(max(until_ns - myelin.now(), 0) * 1e-9)
        return None if sample is None else memoryview(sample)

    def close(self):
        for end in (self.publisher, self.subscriber):
            if end is not None:
                end.close()


sys.exit(myelin_bench_kit.main(json.loads(os.environ["MYELIN_BENCH_SYSTEMS"]), Link))
