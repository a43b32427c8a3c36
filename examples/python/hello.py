"""Greetings from one program to another: bytes of any length.

In one terminal `python3 hello.py subscribe`, in another `python3 hello.py publish`. Both end by themselves.
"""

import sys

import myelin

GREETINGS = 5


def publish():
    node = myelin.Node("hello-publisher")
    publisher = node.topic("hello", bytes).publisher()
    if not publisher.wait_for_match(1, timeout=30):
        print("nobody is there; start `hello.py subscribe` within 30 s")
        return
    for number in range(1, GREETINGS + 1):
        publisher.publish(f"hello, number {number}")
    print(f"published {GREETINGS} greetings")


def subscribe():
    node = myelin.Node("hello-subscriber")
    subscriber = node.topic("hello", bytes).subscriber()
    for _ in range(GREETINGS):
        greeting = subscriber.receive(timeout=30)
        if greeting is None:
            print("nothing came for 30 s; start `hello.py publish`")
            return
        print(f"{greeting.sequence}: {greeting.value.decode()}")


ROLES = {"publish": publish, "subscribe": subscribe}
if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit("usage: hello.py publish|subscribe")
    ROLES[sys.argv[1]]()
