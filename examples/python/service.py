"""A service: one program asks for a path, another one plans it and replies with as many points as it takes.

`python3 service.py serve`, and in another terminal `python3 service.py call`. The client ends by itself, the
server when no client is left.
"""

import math
import sys
from dataclasses import dataclass

import numpy

import myelin

FOR_A_CLIENT = 30
FOR_MORE = 1


@dataclass
class Goal:
    """From the origin to there."""

    x: float
    y: float
    # Between two points, in m.
    step: float


Point = myelin.f64 * 2


def serve():
    service = myelin.Node("planner").service("plan", Goal, [Point])
    plans = 0
    # Until no client is left.
    while request := service.receive(FOR_MORE if plans else FOR_A_CLIENT):
        goal = request.value
        points = math.ceil(math.hypot(goal.x, goal.y) / goal.step) + 1
        with request.loan(points) as path:  # in shared memory, where the client reads it
            path.array()[:, 0] = numpy.linspace(0, goal.x, points)
            path.array()[:, 1] = numpy.linspace(0, goal.y, points)
            path.send()
        plans += 1
    print(f"planned {plans} paths")


def call():
    client = myelin.Node("robot").client("plan", Goal, [Point])
    for leg in range(1, 6):
        # The server may start within this time; if it dies, the call ends at once.
        path = client.call(Goal(3.0 * leg, 4.0 * leg, 1 / 1024), timeout=30)
        x, y = path.array()[-1]
        print(f"{len(path)} points to {x:g} m, {y:g} m")


ROLES = {"serve": serve, "call": call}
if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit("usage: service.py serve|call")
    ROLES[sys.argv[1]]()
