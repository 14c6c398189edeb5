"""Whole clusters in a storm: real nodes, with simulated disks, clocks and network.

`tests/builders/simulated/` has the fault model. Each seed ends with a calm, in which the cluster
must become whole, answer all clients, and have every record that it has acknowledged.
"""

import asyncio

import pytest

from tests.builders.seeds import seeds
from tests.builders.simulated.storms import Storm, simulate


@pytest.mark.parametrize("seed", seeds(10))
def test_a_cluster_keeps_what_it_has_acknowledged(seed: int) -> None:
    simulate(seed)


class PowerCutAndKills(Storm):
    """The leader of all partitions loses power, and the other processes are killed."""

    async def blow(self, duration_s: float) -> None:
        first, *others = self.cluster.nodes
        for node in others:  # The first one leads all partitions alone, below the minimum ISR.
            node.stop()
        await asyncio.sleep(2.0)
        for node in others:
            node.kill()  # The last one cannot stop cleanly without a quorum.
        first.cut_power()
        for node in others:
            node.start()
        await asyncio.sleep(3.0)
        for node in others:
            node.kill()
        for node in self.cluster.nodes:
            node.start()


@pytest.mark.parametrize("seed", seeds(3))
def test_kills_after_a_power_cut_lose_nothing(seed: int) -> None:
    """REP-7: a killed process comes back with all that it had; only the first one has lost data."""
    simulate(seed, storm=PowerCutAndKills)


def test_a_seed_repeats_its_simulation() -> None:
    first, again = simulate(3), simulate(3)
    assert first.history == again.history
    assert first.loop.turns == again.loop.turns
