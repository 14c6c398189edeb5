"""Builders for tests of what reads checkpoints: how far a flow has come, in a line."""

import json
from pathlib import Path

from headrace.pipelines.running.state.folders import FlowState
from headrace.spark.tables.plans import Position


def flow_at(folder: Path, *positions: Position, is_committed: bool = True) -> FlowState:
    """A flow that has planned a batch up to here, and perhaps is done with it."""
    lines = [json.dumps(position.document()) for position in positions]
    for kind in ("offsets", "commits") if is_committed else ("offsets",):
        (folder / "checkpoint" / kind).mkdir(parents=True, exist_ok=True)
        (folder / "checkpoint" / kind / "0").write_text("\n".join(["v1", "{}", *lines, ""]))
    return FlowState(folder)
