"""The start of a replay: that of the running tables, if the log still has its records."""

import json
from pathlib import Path

import pytest

from headrace.pipelines.model import Location, Source
from headrace.pipelines.running.correcting.replay_starts import (
    Log,
    LogTooShort,
    WasRead,
    replay_starts,
    was_read,
)
from headrace.pipelines.running.state.folders import FlowState
from headrace.protocol.topic_partition import TopicPartition
from headrace.protocol.uuids import random_uuid
from headrace.spark.source.offsets import Positions
from headrace.spark.source.starts import Starts, save

PLACE = Location("pipeline.toml", 1)
EARLIEST = Source("orders", PLACE)
LATEST = Source("orders", PLACE, options={"startingoffsets": "latest"})
LIKE = Source("orders", PLACE, topic_pattern="orders.*")
ID, OTHER_ID = random_uuid(), random_uuid()


def at(*offsets: int, topic: str = "orders") -> Positions:
    return {TopicPartition(topic, number): offset for number, offset in enumerate(offsets)}


@pytest.fixture
def state(tmp_path: Path) -> FlowState:
    """A flow that began at 50 of the one partition that there was, and has come to batch 3."""
    found = FlowState(tmp_path)
    save(found.starts / "orders" / "starts.json", Starts(at(50), {"orders": ID}))
    plan(found, 3, {"orders": {"0": 90}})
    return found


def plan(state: FlowState, batch: int, *ends: dict[str, dict[str, int]]) -> None:
    offsets = state.checkpoint / "offsets"
    offsets.mkdir(parents=True, exist_ok=True)
    (offsets / str(batch)).write_text("\n".join(["v1", "{}", *map(json.dumps, ends)]))


def test_the_range_read_by_a_flow_begins_at_its_start(state: FlowState) -> None:
    assert was_read([state], LATEST) == WasRead(at(50), {"orders": ID})


def test_later_partitions_and_topics_were_read_from_their_beginning(
    state: FlowState,
) -> None:
    plan(state, 4, {"orders": {"0": 90, "1": 7}, "orders-new": {"0": 3}}, {"visits": {"0": 9}})
    assert was_read([state], LIKE).begun == at(50, 0) | at(0, topic="orders-new")


@pytest.mark.parametrize(
    "note",
    [
        {"reached": {"orders": {"0": 20}}, "done": 1},
        {"reached": {"orders": {"0": 50}}, "under_way": {"orders": {"0": 20}}},
    ],
)
def test_a_backfill_has_read_records_before_the_start(
    state: FlowState, note: dict[str, object]
) -> None:
    (state.directory / "backfilled.json").write_text(json.dumps(note))
    assert was_read([state], LATEST).begun == at(20)


def test_topics_of_another_cluster_are_not_checked_in_this_one(
    state: FlowState,
) -> None:
    save(state.starts / "abroad" / "starts.json", Starts(at(5, 6, 7), {"orders": OTHER_ID}))
    plan(state, 4, {"orders": {"0": 90}}, {"orders": {"0": 9, "1": 9, "2": 9}})
    assert was_read([state], LATEST) == WasRead(at(50), {"orders": ID})
    abroad = Source("abroad", PLACE, topic="orders")
    assert was_read([state], abroad) == WasRead(at(5, 6, 7), {"orders": OTHER_ID})


def test_a_source_that_the_flow_did_not_read_has_no_start(state: FlowState) -> None:
    assert was_read([state], Source("visits", PLACE)).begun == {}


@pytest.mark.parametrize(
    ("source", "starts"),
    [
        # By its current options, even if they have changed since the flow began.
        (EARLIEST, at(10, 0)),
        (LATEST, at(50, 0)),
        (Source("orders", PLACE, options={"startingTimestamp": "1"}), at(50, 0)),
    ],
    ids=["earliest", "latest", "time"],
)
def test_a_replay_begins_where_the_tables_began_or_with_the_log(
    source: Source, starts: Positions
) -> None:
    log = Log({"orders": ID}, at(10, 0))
    read = WasRead(at(50), {"orders": ID})
    assert replay_starts(source, read, log) == Starts(starts, {"orders": ID})


@pytest.mark.parametrize("source", [EARLIEST, LATEST])
@pytest.mark.parametrize(
    ("read", "log", "why"),
    [
        (WasRead(at(50)), Log({"orders": ID}, at(51)), "orders-0 now begins at offset 51, .* 50"),
        (WasRead(at(50, 0)), Log({"orders": ID}, at(50, 10)), "orders-1 now begins at offset 10"),
        (WasRead(at(50)), Log({}, {}), "orders-0 no longer exists"),
        (WasRead(at(50), {"orders": OTHER_ID}), Log({"orders": ID}, at(0)), "recreated"),
        (
            WasRead(at(50), {"orders": ID}, frozenset({"orders"})),
            Log({"orders": ID}, at(0)),
            "recreated",
        ),
    ],
    ids=["retention", "added partition", "gone", "another topic", "another topic before"],
)
def test_a_log_that_no_longer_has_the_records_is_refused(
    source: Source, read: WasRead, log: Log, why: str
) -> None:
    with pytest.raises(LogTooShort, match=why):
        replay_starts(source, read, log)
