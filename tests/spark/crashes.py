"""Moments at which a pipeline is cut off, for tests of what its next run makes of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import HeadraceError
from headrace.pipelines.running.flow_batches import FlowBatches


def fails_behind_the_commit(
    monkeypatch: pytest.MonkeyPatch, batches: Mapping[str, int]
) -> list[tuple[str, int]]:
    """Let flows fail when their table has a batch and Spark does not know yet; which have.

    So do the first so many batches of each flow that is named, each once. What Spark remembers of
    the batch is lost with it: commits of tables are synced, files of Spark's state are not.
    """
    failed: list[tuple[str, int]] = []
    tell = FlowBatches._tell

    def cut(self: FlowBatches, batch: int, *of_it: Any) -> None:
        flow = self.lineage.flow
        this = (flow, batch)
        if batch < batches.get(flow, 0) and this not in failed:
            failed.append(this)
            lose_state(self.state.checkpoint, batch + 1)
            raise HeadraceError("the power is gone")
        tell(self, batch, *of_it)

    monkeypatch.setattr(FlowBatches, "_tell", cut)
    return failed


def lose_state(checkpoint: Path, version: int) -> None:
    for pattern in (f"{version}.*", f".{version}.*"):
        for path in (checkpoint / "state").rglob(pattern):
            path.unlink()
