"""What a flow tells of its batches."""

from collections.abc import Mapping

import pytest

from headrace.errors import CoordinatorNotAvailable
from headrace.pipelines.model import PipelineSettings, Place, Source
from headrace.pipelines.running.flow_batches import Progress
from headrace.spark.checkpoints import Ranges
from headrace.spark.source import progress

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
