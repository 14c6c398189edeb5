"""A short storm of `make chaos`: kill -9 of any node, over and over, under load of all kinds."""

from pathlib import Path

import pytest

from tests.chaos.faults import KILLS
from tests.chaos.run import Plan, run


@pytest.mark.timeout(300)
def test_clients_see_no_anomaly_while_nodes_are_killed(tmp_path: Path) -> None:
    """REP-10: `make chaos` makes longer storms with other faults."""
    plan = Plan(tmp_path, seed=7, seconds=20, rate=50, weights=dict.fromkeys(KILLS, 1))
    report = run(plan, print)
    print("\n".join(report.lines()))
    assert report.is_good
