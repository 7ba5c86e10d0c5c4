"""Two nodes on one machine: network namespaces joined by a veth pair, whose speed and delay `tc` limits."""

import json
import os
import subprocess


class Obstacle(Exception):
    """Why nothing can be measured here, in one sentence."""


def run(*command):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    except FileNotFoundError:
        raise Obstacle(f"there is no `{command[0]}` here: install iproute2") from None
    if done.returncode != 0:
        raise Obstacle(f"`{' '.join(str(word) for word in command)}` failed: {done.stderr.strip().rstrip('.')}")
    return done.stdout


class Network:
    """Gone at the end of a `with`."""

    def __init__(self, mbytes_per_second, delay_ms):
        self.rate, self.delay = mbytes_per_second, delay_ms
        self.names = [f"gmshaped{os.getpid()}n{node}" for node in range(2)]

    def __enter__(self):
        if os.geteuid() != 0:
            raise Obstacle("network namespaces need root: run this as root")
        try:
            self.build()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def build(self):
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "-n", self.names[0], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
            self.names[1])
        for node, name in enumerate(self.names):
            run("ip", "-n", name, "address", "add", f"{self.address(node)}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", "eth0", "mtu", "9000", "up")
        self.limit(self.rate, "add")
        if self.delay > 0:
            for name in self.names:
                run(*self.tc(name, "add"), "parent", "1:1", "netem", "limit", "100000", "delay", f"{self.delay}ms")

    def tc(self, name, what):
        return ["ip", "netns", "exec", name, "tc", "qdisc", what, "dev", "eth0"]

    def limit(self, mbytes_per_second, what="change"):
        """What a node sends: the bucket is small, so that short transfers do not pass faster than the rate."""
        self.rate = mbytes_per_second
        for name in self.names:
            run(*self.tc(name, what), "root", "handle", "1:", "tbf", "rate", f"{self.rate * 8000:.0f}kbit", "burst",
                "128kb", "latency", "200ms")

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def address(self, node):
        return f"10.78.0.{node + 1}"

    def inside(self, node):
        """What is put before a command so that it runs on this node."""
        return ["ip", "netns", "exec", self.names[node]]

    def sent(self, node):
        """Bytes that the node's interface has sent, headers included."""
        counters = json.loads(run("ip", "-n", self.names[node], "-s", "-j", "link", "show", "eth0"))
        return counters[0]["stats64"]["tx"]["bytes"]
