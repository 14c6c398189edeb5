"""One simulation: a cluster, its clients, a storm of faults, and the calm after it."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from headrace.storage.topic_partition import TopicPartition
from tests.builders.simulated.clients import Clients
from tests.builders.simulated.cluster import Cluster, SimulatedNode, simulated
from tests.builders.simulated.processes import Broken

STORM_S = 15.0
CALM_S = 60.0
_START_S = 30.0
_LOOK_S = 0.02


class Failed(AssertionError):
    """A simulation has found something."""


class Storm:
    """Faults by chance, as many as the fault model allows."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.chance = cluster.chance
        self.power_lost: SimulatedNode | None = None
        self._faults: list[Callable[[SimulatedNode, SimulatedNode], None]] = [
            self._kill,
            self._die_while_writing,
            self._cut_power,
            self._stop,
            self._pause,
            self._cut_one_way,
            self._cut,
            self._cut_off,
            self._slow_link,
            self._slow_disk,
            self._lose_connection,
            self._set_clock,
        ]
        # Each storm has its own mix of faults.
        self._weights = [self.chance.choice((0.2, 1.0, 4.0)) for _ in self._faults]
        self._wait_s = self.chance.choice((0.1, 0.3, 0.6))

    async def blow(self, duration_s: float) -> None:
        loop, chance = self.cluster.loop, self.chance
        end_s = loop.time() + duration_s
        while loop.time() < end_s:
            await asyncio.sleep(chance.expovariate(1 / self._wait_s))
            self._relieve()
            if chance.random() < 0.35:
                self._improve()
                continue
            node, other = chance.sample(self.cluster.nodes, 2)
            chance.choices(self._faults, self._weights)[0](node, other)

    def _improve(self) -> None:
        """Start a node that is down, or end the troubles of the network and the disks."""
        down = [node for node in self.cluster.nodes if not node.is_up]
        if down and self.chance.random() < 0.7:
            self.chance.choice(down).start()
        else:
            self._heal_network()

    # Faults, each to a node or between two of them.

    def _kill(self, node: SimulatedNode, other: SimulatedNode) -> None:
        if node.is_up:
            node.kill()

    def _die_while_writing(self, node: SimulatedNode, other: SimulatedNode) -> None:
        if node.is_up:
            node.dies_after = self.chance.randrange(1, 30)
            self.cluster.note(f"{node.id} dies after {node.dies_after} changes")

    def _cut_power(self, node: SimulatedNode, other: SimulatedNode) -> None:
        in_sync = self._another_in_sync(node)
        if in_sync is None:
            return
        self.power_lost = node
        self.heal()
        node.cut_power()
        if self.chance.random() < 0.5:
            self._cut(node, next(one for one in self.cluster.nodes if one not in (node, in_sync)))
        if self.chance.random() < 0.5:
            self.cluster.loop.call_later(self.chance.expovariate(5.0), self._start_again, node)

    def _stop(self, node: SimulatedNode, other: SimulatedNode) -> None:
        may_stop = node.is_ready and not node.is_stopping and not node.is_paused
        if may_stop:
            node.stop()

    def _pause(self, node: SimulatedNode, other: SimulatedNode) -> None:
        if node.is_up and not node.is_paused:
            node.pause()
            self.cluster.loop.call_later(self.chance.choice((0.1, 1.0, 6.0)), node.resume)

    def _cut_one_way(self, node: SimulatedNode, other: SimulatedNode) -> None:
        self.cluster.note(f"cut {node.id} -> {other.id}")
        self.cluster.network.cuts.add((node.machine, other.machine))

    def _cut(self, node: SimulatedNode, other: SimulatedNode) -> None:
        self.cluster.note(f"cut {node.id} <-> {other.id}")
        self._cut_both(node, other)

    def _cut_off(self, node: SimulatedNode, other: SimulatedNode) -> None:
        self.cluster.note(f"{node.id} is cut off")
        for one in self.cluster.nodes:
            if one is not node:
                self._cut_both(node, one)

    def _cut_both(self, node: SimulatedNode, other: SimulatedNode) -> None:
        self.cluster.network.cuts |= {
            (node.machine, other.machine),
            (other.machine, node.machine),
        }

    def _slow_link(self, node: SimulatedNode, other: SimulatedNode) -> None:
        self.cluster.note(f"slow {node.id} -> {other.id}")
        times = self.chance.choice((20.0, 400.0))
        self.cluster.network.slow[node.machine, other.machine] = times

    def _slow_disk(self, node: SimulatedNode, other: SimulatedNode) -> None:
        self.cluster.note(f"slow disk {node.id}")
        times = self.chance.choice((20.0, 1000.0))
        self.cluster.network.disk_slowness[node.machine] = times

    def _lose_connection(self, node: SimulatedNode, other: SimulatedNode) -> None:
        self.cluster.network.lose_connection()

    def _set_clock(self, node: SimulatedNode, other: SimulatedNode) -> None:
        node.clock.skew_ms += self.chance.choice((-2_000, 500, 2_000))

    # The bounds of the fault model.

    def _start_again(self, node: SimulatedNode) -> None:
        if not node.is_up:
            node.start()

    def _another_in_sync(self, node: SimulatedNode) -> SimulatedNode | None:
        """Return another node that is in sync everywhere; none if the power must stay on.

        Only one node at a time may have lost power, until it is in sync again everywhere.
        """
        cluster = self.cluster
        image = cluster.newest_image()
        if image is None or not node.is_up or self.power_lost is not None:
            return None
        partitions = [one for topic in image.topics.values() for one in topic.partitions]
        for other in cluster.nodes:
            if (
                other is not node
                and other.is_ready
                and not other.is_stopping
                and all(other.id in one.isr for one in partitions)
            ):
                return other
        return None

    def _relieve(self) -> None:
        """Allow the next power cut once the node that had lost power is in sync again."""
        lost = self.power_lost
        image = self.cluster.newest_image()
        if lost is None or image is None or not lost.is_ready or lost.has_lost_data:
            return
        if all(lost.id in one.isr for topic in image.topics.values() for one in topic.partitions):
            self.power_lost = None

    def heal(self) -> None:
        """End all troubles but those of nodes that are down."""
        self._heal_network()
        for node in self.cluster.nodes:
            node.dies_after = None
            node.resume()

    def _heal_network(self) -> None:
        network = self.cluster.network
        if network.cuts or network.slow:
            self.cluster.note("network healed")
        network.cuts.clear()
        network.slow.clear()
        network.disk_slowness.clear()


def simulate(
    seed: int,
    *,
    storm_s: float = STORM_S,
    settings: Mapping[str, str] | None = None,
    storm: Callable[[Cluster], Storm] = Storm,
) -> Cluster:
    """Run one simulation; raises `Failed` with its history."""
    with simulated(seed, settings) as cluster:
        work = cluster.loop.create_task(_simulate(cluster, storm(cluster), storm_s))
        try:
            cluster.loop.run_until_complete(work)
            problems = cluster.checker.broken + cluster.loop.problems
        except Broken as error:
            problems = [str(error), *cluster.loop.problems]
        except AssertionError as error:
            problems = [repr(error), *cluster.checker.broken, *cluster.loop.problems]
        if problems:
            history = "\n".join(cluster.history[-200:])
            raise Failed(
                f"{problems[0]}\n{history}\nseed {seed}, {len(problems)} problems; repeat it with: "
                f"make sim SEED={seed}"
            )
        return cluster


async def _simulate(cluster: Cluster, storm: Storm, storm_s: float) -> None:
    loop = cluster.loop
    watch = loop.create_task(_look(cluster))
    for node in cluster.nodes:
        node.start()
    await _until(cluster, cluster.is_whole, _START_S)
    clients = Clients(cluster)
    cluster.network.delay_s = cluster.chance.choice((0.0003, 0.002, 0.01))
    count = cluster.chance.choice((1, 2, 3))
    async with asyncio.timeout(_START_S):
        await clients.start(clients.admin.make("orders", count))
    clients.start_all([TopicPartition("orders", index) for index in range(count)])
    await asyncio.sleep(1.0)
    await storm.blow(storm_s)
    cluster.note("calm")
    storm.heal()
    restart = loop.create_task(_restart(cluster))
    await _until(cluster, cluster.is_whole, CALM_S)
    await asyncio.sleep(2.0)
    clients.is_quiet = True
    await _until(
        cluster,
        lambda: cluster.is_whole() or clients.unanswered() or cluster.checker.replicas_are_equal(),
        CALM_S,
    )
    restart.cancel()
    watch.cancel()
    clients.check_promises()
    cluster.note(f"acknowledged {sum(len(one.acknowledged) for one in clients.producers)}")


async def _restart(cluster: Cluster) -> None:
    """Start the nodes that are down, as an operator or a supervisor does."""
    while True:
        for node in cluster.nodes:
            if not node.is_up:
                node.start()
        await asyncio.sleep(0.5)


async def _look(cluster: Cluster) -> None:
    while True:
        await asyncio.sleep(_LOOK_S)
        cluster.checker.look()


async def _until(cluster: Cluster, missing: Any, seconds: float) -> None:
    loop = cluster.loop
    end_s = loop.time() + seconds
    while what := missing():
        if cluster.checker.broken or cluster.loop.problems:
            raise Broken((cluster.checker.broken + cluster.loop.problems)[0])
        assert loop.time() < end_s, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(0.1)
