"""The reports of a flow about its batches."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.errors import CoordinatorNotAvailable
from headrace.lake.errors import WriteFailed
from headrace.lake.lineage import Lineage
from headrace.pipelines.model import Location, PipelineSettings, Source
from headrace.pipelines.running.flows.batches import FlowBatches, Progress
from headrace.pipelines.running.state.folders import FlowState
from headrace.pipelines.running.state.reports import Outcome
from headrace.spark.checkpoints import Ranges
from headrace.spark.source import progress
from tests.builders.lakes import files_up_to

PLACE = Location("pipeline.toml", 1)
SETTINGS = PipelineSettings(name="shop", lake="lake", bootstrap="own:9092")
SOURCES = (
    Source("visits", PLACE, options={"kafka.bootstrap.servers": "other:9092"}),
    Source("orders", PLACE),
)


def test_progress_is_committed_to_each_cluster_even_if_another_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told = {}

    def commit(properties: Mapping[str, str], group: str, ends: object) -> None:
        told[properties["bootstrap.servers"]] = (group, ends)
        if properties["bootstrap.servers"] == "other:9092":
            raise CoordinatorNotAvailable("not now")

    monkeypatch.setattr(progress, "commit_progress", commit)
    ranges = Ranges({"visits": {"0": (3, 7)}, "orders": {"0": (0, 2), "1": (0, 9)}})
    Progress("shop.raw.o", SOURCES, SETTINGS).commit(ranges)
    assert told == {
        "other:9092": ("shop.raw.o", {"visits": {"0": 7}}),
        "own:9092": ("shop.raw.o", {"orders": {"0": 2, "1": 9}}),
    }
    (record,) = caplog.records
    assert record.message == "progress of a consumer group not committed"
    assert (vars(record)["group"], vars(record)["error"]) == ("shop.raw.o", "not now")


def test_a_flow_without_room_for_its_report_stops_with_advice(tmp_path: Path) -> None:
    state = FlowState(tmp_path / "g1")
    (state.checkpoint / "offsets").mkdir(parents=True)
    (state.checkpoint / "offsets" / "0").write_text("v1\n{}")
    state.writer()
    target = SimpleNamespace(
        has=lambda token: False, write=lambda rows, token, lineage: Outcome(rows_in=3)
    )
    batches = FlowBatches(Lineage(flow="raw.x"), state, cast(Any, target))
    with files_up_to(10), pytest.raises(WriteFailed, match=r"report\.json .* make room"):
        batches(cast(Any, None), 0)
