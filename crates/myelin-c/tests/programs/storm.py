"""As storm.c, in Python."""

import os
import struct
import sys
import time

import myelin

HEAD, HELD, BYTES_MAX, WATCHDOG = 16, 8, 50000, 60.0


def bytes_of(number):
    return HEAD + (number * 7919 % BYTES_MAX if number % 4 else number % 80)


def filled(number):
    body = bytes([number & 0xFF]) * (bytes_of(number) - HEAD)
    return struct.pack("QQ", number, os.getpid()) + body


def check(payload):
    view = memoryview(payload)
    number = int.from_bytes(view[:8], sys.byteorder)
    assert view[HEAD:] == filled(number)[HEAD:], "a torn payload"
    return number


def publish(node):
    publisher = node.topic("storm").publisher()
    number = 0
    while True:
        if number % 10 == 0:
            publisher.loan(bytes_of(number)).discard()
        with publisher.loan(bytes_of(number)) as loan:
            with memoryview(loan) as view:
                view[:] = filled(number)
            assert loan.publish().sequence == number
        number += 1
        time.sleep(0.0001)


def subscribe(node):
    held = []
    for sample in node.topic("storm").subscriber():
        assert check(sample) == sample.sequence
        held.append((memoryview(sample), sample.sequence))
        if len(held) == HELD:
            assert all(check(view) == sequence for view, sequence in held)
            held.clear()


def call(node):
    client = node.client("survivor", bytes, bytes)
    number = 0
    while True:
        assert check(client.call(filled(number), WATCHDOG)) == number
        number += 1


def serve(node):
    service = node.service("victim", bytes, bytes)
    while True:
        with service.receive() as request:
            request.reply(filled(check(request)))


ROLES = {"publisher": publish, "subscriber": subscribe, "client": call, "server": serve}
ROLES[sys.argv[1]](myelin.Node("victim"))
