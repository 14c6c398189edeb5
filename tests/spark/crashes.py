"""Moments at which a pipeline is interrupted, for tests of its next run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import HeadraceError
from headrace.pipelines.running.flows.batches import FlowBatches


def fails_behind_the_commit(
    monkeypatch: pytest.MonkeyPatch, batches: Mapping[str, int]
) -> list[tuple[str, int]]:
    """Let flows fail after the table's commit of a batch and before Spark's; return the failures.

    For each named flow, this number of first batches fails once each. Spark's state of the batch is
    lost too: commits of tables are synced, files of Spark's state are not.
    """
    failed: list[tuple[str, int]] = []
    report = FlowBatches._report

    def cut(self: FlowBatches, batch: int, *of_it: Any) -> None:
        flow = self.lineage.flow
        this = (flow, batch)
        if batch < batches.get(flow, 0) and this not in failed:
            failed.append(this)
            lose_state(self.state.checkpoint, batch + 1)
            raise HeadraceError("the power is gone")
        report(self, batch, *of_it)

    monkeypatch.setattr(FlowBatches, "_report", cut)
    return failed


def lose_state(checkpoint: Path, version: int) -> None:
    for pattern in (f"{version}.*", f".{version}.*"):
        for path in (checkpoint / "state").rglob(pattern):
            path.unlink()
