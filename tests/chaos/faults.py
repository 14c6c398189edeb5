"""Faults of a storm: a schedule made from a seed, and the threads that carry it out."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from enum import Enum

import msgspec

from headrace.errors import HeadraceError
from headrace.testing.cluster import ClusterNode, ClusterProcess
from tests.chaos.load import PLAIN
from tests.chaos.networks import Networks, NoNamespaces

_PAUSE_S = (0.3, 4.0)
"""The time from one fault to the next; faults may overlap on different nodes."""


class Kind(Enum):
    """The faults; the value is their name in reports."""

    KILL = "kill -9"
    KILL_TWO = "kill -9 of two nodes"
    KILL_ALL = "kill -9 of all nodes"
    PAUSE = "SIGSTOP"
    STOP = "SIGTERM and restart"
    ROLL = "rolling restart"
    CUT = "cut in one direction"
    PART = "cut between two nodes"
    ISOLATE = "cut from all nodes"
    SLOW = "slow links"


KILLS = (Kind.KILL,)
OF_PROCESSES = {
    Kind.KILL: 6,
    Kind.KILL_TWO: 1,
    Kind.KILL_ALL: 1,
    Kind.PAUSE: 4,
    Kind.STOP: 3,
    Kind.ROLL: 1,
}
OF_NETWORKS = {Kind.CUT: 3, Kind.PART: 2, Kind.ISOLATE: 2, Kind.SLOW: 2}
_DURATION_S = {
    Kind.KILL: (0.0, 3.0),
    Kind.KILL_TWO: (0.0, 2.0),
    Kind.KILL_ALL: (0.0, 1.0),
    Kind.STOP: (0.0, 2.0),
    Kind.ROLL: (0.0, 1.0),
}
_LONG_S = (1.0, 12.0)


class Aim(Enum):
    """The node that a fault meets."""

    ANY = "any"
    CONTROLLER = "controller"
    LEADER = "leader"


class Fault(msgspec.Struct, frozen=True):
    """One fault of a schedule."""

    at_s: float
    kind: Kind
    aim: Aim
    number: int
    """The node if any may be met; the other one of a pair follows it."""
    duration_s: float


def schedule(seed: int, seconds: float, weights: dict[Kind, int]) -> list[Fault]:
    """Return the faults of a storm; the same for the same arguments."""
    chance = random.Random(seed)
    kinds, numbers = list(weights), list(weights.values())
    faults = []
    at_s = chance.uniform(*_PAUSE_S)
    while at_s < seconds:
        (kind,) = chance.choices(kinds, numbers)
        duration_s = chance.uniform(*_DURATION_S.get(kind, _LONG_S))
        aim = chance.choice(list(Aim))
        faults.append(Fault(at_s, kind, aim, chance.randint(1, 3), duration_s))
        at_s += chance.uniform(*_PAUSE_S)
    return faults


class Storm:
    """Carries out a schedule. A node has one fault at a time; others that meet it are left out."""

    def __init__(
        self,
        cluster: ClusterProcess,
        faults: Collection[Fault],
        networks: Networks | None,
        log: Callable[[str], None],
    ) -> None:
        self.made: Counter[Kind] = Counter()
        self.failures: list[str] = []
        self._cluster = cluster
        self._faults = faults
        self._networks = networks
        self._log = log
        self._busy: set[int] = set()
        self._lock = threading.Lock()

    def run(self) -> None:
        """Return when all faults are over and every node runs."""
        began, threads = time.monotonic(), []
        for fault in self._faults:
            time.sleep(max(0.0, began + fault.at_s - time.monotonic()))
            thread = threading.Thread(target=self._make, args=(fault,), daemon=True)
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()

    def _make(self, fault: Fault) -> None:
        numbers: list[int] = []
        try:
            numbers = self._claim(fault)
            if numbers:
                self._log(f"{fault.kind.value}: {numbers}, {fault.duration_s:.1f} s")
                self.made[fault.kind] += 1
                self._carry_out(fault, [self._cluster.node(number) for number in numbers])
        except (HeadraceError, NoNamespaces) as error:
            self.failures.append(f"{fault.kind.value} of {numbers}: {error}")
        finally:
            with self._lock:
                self._busy.difference_update(numbers)

    def _claim(self, fault: Fault) -> list[int]:
        """Return the nodes to meet, or none if one of them has a fault already."""
        first = self._aimed_at(fault)
        second = first % 3 + 1
        match fault.kind:
            case Kind.KILL_TWO | Kind.CUT | Kind.PART:
                numbers = [first, second]
            case Kind.KILL_ALL | Kind.ROLL:
                numbers = [1, 2, 3]
            case _:
                numbers = [first]
        with self._lock:
            if self._busy & set(numbers):
                return []
            self._busy.update(numbers)
        return numbers

    def _aimed_at(self, fault: Fault) -> int:
        try:
            if fault.aim is Aim.CONTROLLER:
                return self._cluster.active_controller().id
            if fault.aim is Aim.LEADER:
                return self._cluster.leader_of(PLAIN).id
        except HeadraceError:
            pass  # The cluster is without one at the moment.
        return fault.number

    def _carry_out(self, fault: Fault, nodes: list[ClusterNode]) -> None:
        match fault.kind:
            case Kind.KILL | Kind.KILL_TWO | Kind.KILL_ALL:
                for node in nodes:
                    node.kill()
                time.sleep(fault.duration_s)
                _start(nodes)
            case Kind.STOP:
                nodes[0].stop()
                time.sleep(fault.duration_s)
                _start(nodes)
            case Kind.ROLL:
                for node in nodes:
                    node.restart()
                    time.sleep(fault.duration_s)
            case Kind.PAUSE:
                nodes[0].pause()
                time.sleep(fault.duration_s)
                nodes[0].resume()
            case _:
                self._disturb(fault, [node.id for node in nodes])

    def _disturb(self, fault: Fault, numbers: list[int]) -> None:
        networks = self._networks
        assert networks is not None
        if fault.kind is Kind.SLOW:
            networks.slow_down(numbers[0])
            time.sleep(fault.duration_s)
            networks.speed_up(numbers[0])
            return
        cuts = _cuts(fault.kind, numbers)
        for source, target in cuts:
            networks.cut(source, target)
        time.sleep(fault.duration_s)
        for source, target in cuts:
            networks.join(source, target)


def _cuts(kind: Kind, numbers: list[int]) -> list[tuple[int, int]]:
    first = numbers[0]
    others = [number for number in (1, 2, 3) if number != first]
    match kind:
        case Kind.CUT:
            return [(first, numbers[1])]
        case Kind.PART:
            return [(first, numbers[1]), (numbers[1], first)]
        case _:
            return [pair for other in others for pair in ((first, other), (other, first))]


def _start(nodes: list[ClusterNode]) -> None:
    for node in nodes:
        node.launch()
    for node in nodes:
        node.wait_until_ready()
