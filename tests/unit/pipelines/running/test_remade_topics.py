"""When a topic may hold other records than those that a flow has read of it."""

from pathlib import Path

import pytest

from headrace.pipelines.model import PipelineSettings, Place, Source
from headrace.pipelines.running.remade_topics import mixed, notes_of, remade, remade_for
from headrace.pipelines.running.state import FlowState
from headrace.protocol.uuids import Uuid, random_uuid
from headrace.spark.source.starts import Starts, save

ID, OTHER_ID = random_uuid(), random_uuid()
READ = Starts({}, {"orders": ID})


@pytest.mark.parametrize(
    ("notes", "now", "is_remade"),
    [
        pytest.param([READ], {"orders": ID}, False, id="it is the one that was read"),
        pytest.param([READ], {"orders": OTHER_ID}, True, id="made again"),
        pytest.param([READ], {}, True, id="deleted"),
        pytest.param(
            [Starts({}, {"orders": ID}, frozenset({"orders"}))],
            {"orders": ID},
            True,
            id="made again and read on",
        ),
        pytest.param(
            [READ, Starts({}, {"orders": OTHER_ID})],
            {"orders": OTHER_ID},
            True,
            id="made again when another source read it",
        ),
        pytest.param([], {"orders": ID}, True, id="nothing is noted"),
        pytest.param([READ, Starts({}, {"visits": OTHER_ID})], {"orders": ID}, False, id="another"),
    ],
)
def test_a_topic_is_the_one_that_was_read_if_all_notes_say_so(
    notes: list[Starts], now: dict[str, Uuid], is_remade: bool
) -> None:
    assert remade(notes, ["orders"], now) == ({"orders"} if is_remade else set())


def test_tables_mix_records_of_topics_that_were_read_on_or_by_two_ids() -> None:
    read_on = Starts({}, {"orders": ID, "visits": ID}, frozenset({"visits"}))
    others = Starts({}, {"orders": ID, "clicks": ID}), Starts({}, {"clicks": OTHER_ID})
    assert mixed([read_on, *others]) == {"visits", "clicks"}


def test_notes_of_sources_that_have_another_name_now_count_too(tmp_path: Path) -> None:
    state = FlowState(tmp_path)
    save(state.starts / "former" / "starts.json", READ)
    assert notes_of([state]) == [READ]


def test_what_the_stock_connector_reads_is_taken_for_what_it_was(tmp_path: Path) -> None:
    source = Source("orders", Place("pipeline.toml", 1), connector="kafka")
    assert remade_for(FlowState(tmp_path), source, PipelineSettings("shop"), {"orders"}) == set()
