"""One thread that waits for two topics, a timer and the end of another thread's work.

`python3 wait_set.py subscribe`, and in another terminal `python3 wait_set.py publish`. Both end by
themselves.
"""

import math
import sys
import threading

import myelin

STEPS = 10
Pair = myelin.f64 * 2


def publish():
    node = myelin.Node("base")
    wheels = node.topic("wheels", Pair, depth=STEPS).publisher()
    goals = node.topic("goals", Pair).publisher()
    if not wheels.wait_for_match(1, timeout=30) or not goals.wait_for_match(1, timeout=30):
        print("nobody is there; start `wait_set.py subscribe` within 30 s")
        return
    for step in range(STEPS):
        wheels.publish((step, step + 0.5))
    goals.publish((3.0, 4.0))
    print(f"published {STEPS} steps and a goal")


def subscribe():
    node = myelin.Node("navigator")
    wheels = node.topic("wheels", Pair, depth=STEPS).subscriber()
    goals = node.topic("goals", Pair).subscriber()
    wait_set = node.wait_set()
    wait_set.add(wheels)
    wait_set.add(goals)
    tick = wait_set.timer(30)
    planned = wait_set.guard_condition()

    def plan(goal):
        print(f"{math.hypot(*goal):g} m to the goal")
        planned.trigger()

    steps, is_planned = 0, False
    while steps < STEPS or not is_planned:
        ready = wait_set.wait()
        if wheels in ready:
            while wheel := wheels.take():
                steps += 1
                left, right = wheel.value
                print(f"wheels at {left:g} m, {right:g} m")
        if goals in ready and (goal := goals.take()):
            threading.Thread(target=plan, args=(goal.value,)).start()
        is_planned |= planned in ready
        if tick in ready:
            print("not all came within 30 s; start `wait_set.py publish`")
            break


ROLES = {"publish": publish, "subscribe": subscribe}
if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit("usage: wait_set.py publish|subscribe")
    ROLES[sys.argv[1]]()
