"""Runs of pipelines without a Spark, on a clock that passes only while someone waits."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headrace.lake.catalog import Lake
from headrace.pipelines.running.state import PipelineState
from tests.declared_pipelines import load_folder

TABLE = "CREATE STREAMING TABLE raw.x AS SELECT * FROM STREAM(sources.orders);"


@dataclass(slots=True)
class Clock:
    """A time that passes only while someone waits."""

    now_s: float = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def time_ns(self) -> int:
        return round(self.now_s * 1e9)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def standing_run(folder: Path, name: str = "shop") -> Any:
    """A run whose flows nobody has started, with a place to write down how it stands."""
    state = PipelineState(folder / "state")
    state.directory.mkdir(parents=True)
    return SimpleNamespace(
        name=name,
        spark=None,
        pipeline=load_folder(folder, {"a.sql": TABLE}),
        state=state,
        generations={},
        lake=Lake(folder / "lake"),
        preparation=SimpleNamespace(inputs={"raw.x": set()}),
        flows=lambda: (),
        moving=lambda: SimpleNamespace(views=set(), settle=lambda: None),
        flow_state=lambda flow: state.flow(flow.name, 0),
        is_current=lambda: True,
    )
