"""A subscriber in an asyncio loop, here beside a time limit: what epoll is to the other languages.

`python3 async_for.py subscribe`, and in another terminal `python3 async_for.py publish`. Both end by
themselves.
"""

import asyncio
import sys
import time

import myelin

SAMPLES = 10


def publish():
    publisher = myelin.Node("odometer").topic("odometry", myelin.f64 * 2).publisher()
    if not publisher.wait_for_match(1, timeout=30):
        print("nobody is there; start `async_for.py subscribe` within 30 s")
        return
    for step in range(SAMPLES):
        publisher.publish((float(step), 0.5))
        time.sleep(0.02)
    print(f"published {SAMPLES} samples")


async def display():
    topic = myelin.Node("display").topic("odometry", myelin.f64 * 2)
    taken = 0
    async for sample in topic.subscriber(descriptor=True):
        position, speed = sample.value
        print(f"at {position:g} m, {speed:g} m/s")
        taken += 1
        if taken == SAMPLES:
            return


def subscribe():
    try:
        asyncio.run(asyncio.wait_for(display(), 30))
    except asyncio.TimeoutError:
        print("not all came within 30 s; start `async_for.py publish`")


ROLES = {"publish": publish, "subscribe": subscribe}
if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit("usage: async_for.py publish|subscribe")
    ROLES[sys.argv[1]]()
