"""Runs of pipelines without a Spark, on a clock that passes only while someone waits."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headrace.lake.catalog import Lake
from headrace.pipelines.running.state.folders import PipelineState
from tests.builders.declared_pipelines import load_folder

TABLE = "CREATE STREAMING TABLE raw.x AS SELECT * FROM STREAM(sources.orders);"


@dataclass(slots=True)
class Clock:
    """A time that passes only while someone waits."""

    now_s: float = 1000.0

    def monotonic_ms(self) -> int:
        return round(self.now_s * 1000)

    def now_ms(self) -> int:
        return round(self.now_s * 1000)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def standing_run(folder: Path, name: str = "shop", clock: Clock | None = None) -> Any:
    """A run without started flows, with a directory for its state."""
    state = PipelineState(folder / "state")
    state.directory.mkdir(parents=True)
    return SimpleNamespace(
        name=name,
        spark=None,
        pipeline=load_folder(folder, {"a.sql": TABLE}),
        state=state,
        clock=clock or Clock(),
        generations=SimpleNamespace(chosen={}, is_current=lambda: True),
        lake=Lake(folder / "lake"),
        preparation=SimpleNamespace(inputs={"raw.x": set()}),
        flows=lambda: (),
        view_migrations=lambda: SimpleNamespace(views=set(), complete=lambda: None),
        folders=SimpleNamespace(of=lambda flow: state.flow(flow.name, 0)),
    )
