"""As src/main.rs, in Python: counts.py LIBRARY, made of counts_python.c."""

import ctypes
import os
import sys
import threading
import time

import myelin

WARM_UP, EACH, WAKES, LIMIT = 100, 200, 20, 30
library = ctypes.PyDLL(sys.argv[1])


def mark(what):
    try:
        os.write(-1, what)
    except OSError:
        pass


def once(name, operation):
    call = getattr(library, "call_" + name)
    call.argtypes, call.restype = [ctypes.py_object], None
    mark(b"counted " + name.encode())
    call(operation)
    mark(b"counted")


def counted(name, operation):
    def repeat(times=EACH):
        for _ in range(times):
            operation()

    repeat(WARM_UP)
    once(name, repeat)


def matched(here, there, name, kind=bytes):
    publisher, subscriber = here.topic(name, kind).publisher(), there.topic(name, kind).subscriber()
    assert publisher.wait_for_match(1, LIMIT) and subscriber.wait_for_match(1, LIMIT)
    return publisher, subscriber


def sleeps(thread):
    with open(f"/proc/self/task/{thread}/stat") as file:
        return file.read().rsplit(") ", 1)[1][0] == "S"


def main():
    here, there = myelin.Node("from"), myelin.Node("to")
    small = bytes([7]) * 64

    publisher, subscriber = matched(here, there, "copy")
    counted("publish_copy", lambda: publisher.publish(small))
    while subscriber.take():
        pass

    def publish_take():
        publisher.publish(small)
        assert subscriber.take()

    counted("publish_copy_take", publish_take)

    lender, borrower = matched(here, there, "loan")

    def lend():
        loan = lender.loan(4096)
        with memoryview(loan) as view:
            view[0] = 7
        loan.publish()

    def lend_take():
        lend()
        assert borrower.take()

    lend()
    assert borrower.receive(LIMIT)  # it has mapped the memory
    counted("loan_publish", lend)
    while borrower.take():
        pass
    counted("loan_publish_take", lend_take)

    wait_set, others = there.wait_set(), []
    for number in range(10):
        others.append(matched(here, there, f"set/{number}"))
        wait_set.add(others[-1][1])

    def turn():
        others[-1][0].publish(small)
        assert len(wait_set.wait(LIMIT)) == 1
        assert others[-1][1].take()

    counted("wait_set_turn", turn)

    executor = there.executor()
    ordering, ordered = matched(here, there, "executor")
    executor.on_sample(ordered, lambda sample: None)

    def executor_turn():
        ordering.publish(small)
        executor.turn(LIMIT)

    counted("executor_turn", executor_turn)

    caller, called = matched(here, here, "callback")
    callback = called.on_sample(lambda sample: None)
    counted("callback", lambda: caller.publish(small))
    assert callback.calls == WARM_UP + EACH

    service, client = here.service("service", bytes, bytes), there.client("service", bytes, bytes)
    while not client.wait_for_service(0.001):
        service.take()

    def call(limit=0):
        pending = client.send(small)
        service.receive(limit).reply(small)
        assert pending.receive(limit)

    call(LIMIT)  # the first one may take a moment
    counted("service_call", call)

    waker, sleeper = matched(here, there, "wake")
    sleeper.set_wait("block")
    taken = []

    def sleep():
        for _ in range(WAKES):
            assert sleeper.receive(LIMIT)
            taken.append(1)

    thread = threading.Thread(target=sleep)
    thread.start()
    for wake in range(WAKES):
        time.sleep(0.005)  # it no longer waits for the interpreter
        while len(taken) < wake or not sleeps(thread.native_id):
            time.sleep(0.001)
        once("wake", lambda: waker.publish(small))
    thread.join()


main()
