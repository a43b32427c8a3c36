"""A ROS 2 node of the tests of rmw_myelin, as anybody writes them: rclpy, and nothing of Myelin. It says
what happens on its standard output, and ends when its standard input does. Roles: the last lines."""

import os
import random
import select
import signal
import sys
import time

import rclpy
import rclpy.parameter
from action_msgs.msg import GoalStatus
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rclpy.action import ActionClient, ActionServer
from rclpy.parameter_client import AsyncParameterClient
from sensor_msgs.msg import Image
from std_msgs.msg import Int32
from test_msgs.action import Fibonacci
from test_msgs.srv import BasicTypes

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../peers"))
from ros2 import KINDS, number_of, say  # noqa: E402


# Images are large; of small messages none is lost, however long a busy machine holds up a node.
DEPTHS = {"Image": 10}
DEPTH = 1000
# How many of many endpoints are used at once; messages of all are published later.
AT_ONCE, LATER = 20, 1000
# A storm: how many nodes at once, and how long they live at most.
ALIVE, LIFE_S = 4, 0.1


def is_over():
    return bool(select.select([sys.stdin], [], [], 0)[0])


def spin(node, until=lambda: False):
    while not is_over() and not until():
        rclpy.spin_once(node, timeout_sec=0.01)


def spin_for(node, future):
    rclpy.spin_until_future_complete(node, future)
    return future.result()


def publish(node, *kinds):
    """Message n of each type, one after the other, for ever."""
    outs = [(node.create_publisher(KINDS[kind][0], kind, DEPTHS.get(kind, DEPTH)), KINDS[kind][1]) for kind in kinds]
    sent = 0

    def send():
        nonlocal sent
        for publisher, make in outs:
            publisher.publish(make(sent))
        sent += 1

    node.create_timer(0.02, send)
    spin(node)


def subscribe(node, *kinds):
    def subscription(kind):
        kind, _, topic = kind.partition(":")
        message, make = KINDS[kind]

        def take(got):
            n = number_of(got)
            say(kind if got == make(n) else f"wrong {kind}", n)

        return node.create_subscription(message, topic or kind, take, DEPTHS.get(kind, DEPTH))

    [subscription(kind) for kind in kinds]
    spin(node)


def follow_time(node):
    """Says the seconds of a clock that follows /clock."""
    node.set_parameters([rclpy.parameter.Parameter("use_sim_time", value=True)])
    spin(node, lambda: node.get_clock().now().nanoseconds > 0)
    say("time", node.get_clock().now().nanoseconds // 10**9)


def answer(request, response):
    response.int32_value = request.int32_value + 1
    response.string_value = request.string_value[::-1]
    return response


def serve(node):
    """A service, a parameter and an action."""

    def count(goal):
        sequence = [0, 1]
        for _ in range(goal.request.order):
            sequence.append(sequence[-1] + sequence[-2])
            goal.publish_feedback(Fibonacci.Feedback(sequence=sequence))
        goal.succeed()
        return Fibonacci.Result(sequence=sequence)

    node.create_service(BasicTypes, "turn", answer)
    node.declare_parameter("speed", 1.5)
    action = ActionServer(node, Fibonacci, "count", count)
    say("ready", node.get_name())
    spin(node)
    action.destroy()


def ask(node, of):
    client = node.create_client(BasicTypes, "turn")
    client.wait_for_service()
    for n in range(20):
        request = BasicTypes.Request(int32_value=n, string_value=f"request {n}")
        response = spin_for(node, client.call_async(request))
        assert response.int32_value == n + 1 and response.string_value == f"request {n}"[::-1]
    say("service", 20)

    parameters = AsyncParameterClient(node, of)
    parameters.wait_for_services()
    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=2.5)
    results = spin_for(node, parameters.set_parameters([Parameter(name="speed", value=value)]))
    assert results.results[0].successful, results
    values = spin_for(node, parameters.get_parameters(["speed"])).values
    assert values[0].double_value == 2.5, values
    say("parameter", values[0].double_value)

    action = ActionClient(node, Fibonacci, "count")
    action.wait_for_server()
    feedback = []
    goal = spin_for(
        node, action.send_goal_async(Fibonacci.Goal(order=5), lambda it: feedback.append(it.feedback))
    )
    assert goal.accepted
    done = spin_for(node, goal.get_result_async())
    assert done.status == GoalStatus.STATUS_SUCCEEDED
    assert list(done.result.sequence) == [0, 1, 1, 2, 3, 5, 8], done
    assert all(list(it.sequence) == [0, 1, 1, 2, 3, 5, 8][: len(it.sequence)] for it in feedback)
    say("action", len(feedback))
    action.destroy()


def count(node):
    """A service, and another one that returns how many different messages of topic `many` have come: those that
    were published at once, and the others."""
    heard = set()

    def tell(request, response):
        response.int32_value = sum(message < LATER for message in heard)
        response.int64_value = sum(message >= LATER for message in heard)
        return response

    node.create_service(BasicTypes, "turn", answer)
    node.create_service(BasicTypes, "heard", tell)
    node.create_subscription(Int32, "many", lambda message: heard.add(message.data), DEPTH)
    spin(node)


def use(node, endpoints):
    """Makes so many publishers, and uses some of them at once, and as many clients; the others when they are
    matched. It has known the other side for long. It says how many calls have no answer and how many messages are
    lost of those at once."""
    heard = node.create_client(BasicTypes, "heard")
    heard.wait_for_service()
    numbers = range(int(endpoints))
    request = BasicTypes.Request(int32_value=1)
    clients, publishers, unanswered = [], [], 0
    for number in numbers:
        publishers.append(node.create_publisher(Int32, "many", 10))
        if number < AT_ONCE:
            publishers[-1].publish(Int32(data=number))
            clients.append(node.create_client(BasicTypes, "turn"))
            answered = clients[-1].call_async(request)
            rclpy.spin_until_future_complete(node, answered, timeout_sec=2)
            unanswered += not answered.done()
    for number in numbers[AT_ONCE:]:
        while publishers[number].get_subscription_count() == 0:
            rclpy.spin_once(node, timeout_sec=0.01)
        publishers[number].publish(Int32(data=LATER + number))
    while True:
        told = spin_for(node, heard.call_async(request))
        if told.int64_value == len(numbers) - AT_ONCE:
            break
        time.sleep(0.01)
    say("used", f"{unanswered} {AT_ONCE - told.int32_value}")
    spin(node)


def watch(node):
    """The nodes, and the publishers of String, whenever they are others."""
    told = None
    while not is_over():
        names = ",".join(sorted(node.get_node_names()))
        found = f"{names} {node.count_publishers('String')}"
        if found != told:
            told = found
            say("graph", found)
        rclpy.spin_once(node, timeout_sec=0.01)


def soak(node, number, nodes):
    """One of a ring of nodes: it has the images of the one before it, asks that one's service and sets its
    parameter. Each second it says how many nodes it sees, and how much it has had of each."""
    number, nodes = int(number), int(nodes)
    before = (number - 1) % nodes
    had = {"images": 0, "answers": 0, "parameters": 0}

    def count(what):
        had[what] += 1

    image = Image(height=240, width=320, encoding="rgb8", step=960, data=bytes(240 * 960))
    images = node.create_publisher(Image, f"image{number}", 10)
    node.create_subscription(Image, f"image{before}", lambda message: count("images"), 10)
    node.create_service(BasicTypes, f"turn{number}", answer)
    node.declare_parameter("speed", 1.5)
    client = node.create_client(BasicTypes, f"turn{before}")
    parameters = AsyncParameterClient(node, f"soak{before}")
    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=2.5)

    def send():
        images.publish(image)
        if client.service_is_ready():
            asked = client.call_async(BasicTypes.Request(int32_value=number))
            asked.add_done_callback(lambda done: done.result().int32_value == number + 1 and count("answers"))

    def tell():
        if parameters.services_are_ready():
            setting = parameters.set_parameters([Parameter(name="speed", value=value)])
            setting.add_done_callback(lambda done: done.result().results[0].successful and count("parameters"))
        say("soak", f"{len(node.get_node_names())} {' '.join(map(str, had.values()))}")

    node.create_timer(0.2, send)
    node.create_timer(1.0, tell)
    while not is_over():
        rclpy.spin_once(node, timeout_sec=1.0)


def be_killed(name):
    """Does a bit of everything, until it is killed."""
    rclpy.init()
    node = rclpy.create_node(name)
    publisher = node.create_publisher(KINDS["String"][0], "String", 10)
    node.create_subscription(KINDS["Imu"][0], "Imu", lambda message: None, 10)
    node.create_subscription(KINDS["String"][0], "String", lambda message: None, 10)
    node.create_service(BasicTypes, "turn", lambda request, response: response)
    client = node.create_client(BasicTypes, "turn")
    while True:
        publisher.publish(KINDS["String"][1](0))
        if client.service_is_ready():
            client.call_async(BasicTypes.Request())
        rclpy.spin_once(node, timeout_sec=0.001)


def storm(kills):
    """Starts nodes and kills them, some at a time, at any moment of their lives."""
    alive = {}
    for number in range(kills + ALIVE):
        if len(alive) == ALIVE:
            time.sleep(random.uniform(0, LIFE_S))
            pid = random.choice(list(alive))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            del alive[pid]
        pid = os.fork()
        if pid == 0:
            be_killed(f"victim{number}")
        alive[pid] = number
        if number % 50 == 0:
            say("alive", number)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    say("killed", kills + ALIVE)


def threads(name):
    found = 0
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as comm:
                found += comm.read().strip() == name
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended
    return found


def one_after_another(contexts):
    """Each context has a node for a while. In the end at most one is left: Python may keep the last."""
    for number in range(contexts):
        rclpy.init()
        node = rclpy.create_node(f"node{number}")
        node.create_publisher(KINDS["String"][0], "String", 10)
        rclpy.spin_once(node, timeout_sec=0)
        if number % 2 == 0:
            node.destroy_node()
            rclpy.shutdown()
        else:
            rclpy.shutdown()
            node.destroy_node()
    while max(threads("myelin-node"), threads("myelin-network")) > 1:
        time.sleep(0.01)
    say("contexts", contexts)


def main(role, name, *words):
    if role == "storm":
        return storm(int(words[0]))
    if role == "contexts":
        return one_after_another(int(words[0]))
    rclpy.init()
    node = rclpy.create_node(name)
    roles = {"pub": publish, "sub": subscribe, "serve": serve, "ask": ask, "watch": watch, "soak": soak,
             "count": count, "use": use, "time": follow_time}
    roles[role](node, *words)
    while not is_over():
        time.sleep(0.01)
    node.destroy_node()
    rclpy.shutdown()


if len(sys.argv) < 3:
    sys.exit("usage: node.py pub|sub|serve|ask|watch|soak|count|use|time|storm|contexts NAME "
             "[TYPE[:TOPIC]…|NODE|NUMBER NODES|ENDPOINTS|KILLS|CONTEXTS]")
main(*sys.argv[1:])
