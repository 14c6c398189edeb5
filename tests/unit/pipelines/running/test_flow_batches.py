"""What a flow tells of its batches."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.errors import CoordinatorNotAvailable
from headrace.lake.errors import WriteFailed
from headrace.lake.lineage import Lineage
from headrace.pipelines.model import PipelineSettings, Place, Source
from headrace.pipelines.running.flow_batches import FlowBatches, Progress
from headrace.pipelines.running.reports import Outcome
from headrace.pipelines.running.state import FlowState
from headrace.spark.checkpoints import Ranges
from headrace.spark.source import progress
from tests.lakes import files_up_to

PLACE = Place("pipeline.toml", 1)
SETTINGS = PipelineSettings(name="shop", lake="lake", bootstrap="own:9092")
SOURCES = (
    Source("visits", PLACE, options={"kafka.bootstrap.servers": "other:9092"}),
    Source("orders", PLACE),
)


def test_progress_is_told_to_each_cluster_of_its_own_topics_also_if_another_does_not_hear(
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
    assert "shop.raw.o was not committed: not now" in caplog.text


def test_a_flow_whose_report_finds_no_room_is_stopped_with_what_to_do(tmp_path: Path) -> None:
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
