"""Whole clusters in a storm: real nodes, with simulated disks, clocks and network.

`tests/builders/simulated/` has the fault model. Each seed ends with a calm, in which the cluster
must become whole, answer all clients, and have every record that it has acknowledged.
"""

import pytest

from tests.builders.seeds import seeds
from tests.builders.simulated.storms import simulate


@pytest.mark.parametrize("seed", seeds(10))
def test_a_cluster_keeps_what_it_has_acknowledged(seed: int) -> None:
    simulate(seed)


def test_a_seed_repeats_its_simulation() -> None:
    first, again = simulate(3), simulate(3)
    assert first.history == again.history
    assert first.loop.turns == again.loop.turns
