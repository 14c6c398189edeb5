"""Networks of nodes on one machine: a namespace for each, whose links are cut or slowed down.

Each node has a namespace with a pair of virtual interfaces to the main namespace, which routes
between them and where the clients are. A rule of the main namespace drops packets from one node to
another silently, as a broken switch does. All names and rules contain the process id and are taken
away at the end.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from headrace.testing.cluster import Network

_FORWARDING = "/proc/sys/net/ipv4/ip_forward"
_RULES = 20_000
"""Priority of the first rule; those of the system come later."""
_SLOW = ("rate", "300kbit", "burst", "16kbit", "latency", "500ms")


class NoNamespaces(Exception):
    """The machine or the user may not have network namespaces."""


class Networks:
    """The networks of some nodes, numbered from 1."""

    def __init__(self, nodes: int) -> None:
        self._prefix = f"hr{os.getpid() % 100_000}n"
        self._block = os.getpid() % 200 + 20
        self.numbers = range(1, nodes + 1)

    @property
    def of_nodes(self) -> list[Network]:
        return [
            Network(self._host(number), ("ip", "netns", "exec", self._name(number)))
            for number in self.numbers
        ]

    def cut(self, source: int, target: int) -> None:
        """Drop all packets from one node to another."""
        _run("ip", "rule", "add", *self._rule(source, target))

    def join(self, source: int, target: int) -> None:
        """End a cut."""
        _run("ip", "rule", "del", *self._rule(source, target))

    def slow_down(self, number: int) -> None:
        """Limit what a node sends and receives."""
        _run("tc", "qdisc", "add", "dev", self._name(number), "root", "tbf", *_SLOW)
        inside = ("tc", "-n", self._name(number), "qdisc", "add", "dev", "eth0", "root", "tbf")
        _run(*inside, *_SLOW)

    def speed_up(self, number: int) -> None:
        """End a limit."""
        _run("tc", "qdisc", "del", "dev", self._name(number), "root")
        _run("tc", "-n", self._name(number), "qdisc", "del", "dev", "eth0", "root")

    def _make(self) -> None:
        for number in self.numbers:
            name, host = self._name(number), self._host(number)
            gateway = f"{host.rpartition('.')[0]}.1"
            _run("ip", "netns", "add", name)
            _run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            _run("ip", "addr", "add", f"{gateway}/30", "dev", name)
            _run("ip", "link", "set", name, "up")
            _run("ip", "-n", name, "addr", "add", f"{host}/30", "dev", "eth0")
            _run("ip", "-n", name, "link", "set", "lo", "up")
            _run("ip", "-n", name, "link", "set", "eth0", "up")
            _run("ip", "-n", name, "route", "add", "default", "via", gateway)

    def _remove(self) -> None:
        for source in self.numbers:
            for target in self.numbers:
                with suppress(NoNamespaces):
                    self.join(source, target)
        for number in self.numbers:
            with suppress(NoNamespaces):
                _run("ip", "netns", "del", self._name(number))

    def _name(self, number: int) -> str:
        return f"{self._prefix}{number}"

    def _host(self, number: int) -> str:
        return f"10.{self._block}.{number}.2"

    def _rule(self, source: int, target: int) -> list[str]:
        priority = str(_RULES + self._block * 16 + source * 4 + target)
        return ["pref", priority, "from", self._host(source), "to", self._host(target), "blackhole"]


@contextmanager
def networks(nodes: int) -> Iterator[Networks]:
    """Make namespaces for nodes; raise `NoNamespaces` where they are not possible."""
    if os.geteuid() or not shutil.which("ip") or not shutil.which("tc"):
        raise NoNamespaces("namespaces need root, ip and tc")
    with open(_FORWARDING, encoding="ascii") as file:
        before = file.read()
    made = Networks(nodes)
    try:
        made._make()
        _forward("1")
        made.cut(1, 2)
        made.join(1, 2)
    except (NoNamespaces, OSError) as error:
        made._remove()
        raise NoNamespaces(str(error)) from error
    try:
        yield made
    finally:
        made._remove()
        _forward(before)


def _forward(value: str) -> None:
    with open(_FORWARDING, "w", encoding="ascii") as file:
        file.write(value)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    if done.returncode:
        raise NoNamespaces(f"{' '.join(command)}: {done.stderr.strip()}")
