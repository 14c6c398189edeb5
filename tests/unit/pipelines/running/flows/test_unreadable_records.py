"""Which part of a batch is a source's, and which sources find the same records unreadable."""

import pytest

from headrace.pipelines.model import Location, PipelineSettings, Source
from headrace.pipelines.running.flows.unreadable_records import SideOutputs, TopicSideOutput
from headrace.spark.side_output import SideOutput

SPANS = {"orders": {"0": (3, 9), "1": (9, 2)}, "prices": {"0": (0, 1)}}


@pytest.mark.parametrize(
    ("source", "topics"),
    [
        (Source("orders", Location("f", 1), topic="orders"), ["orders"]),
        (Source("both", Location("f", 1), topic="orders, prices"), ["orders", "prices"]),
        (Source("like", Location("f", 1), topic_pattern="pri.*"), ["prices"]),
        (Source("other", Location("f", 1), topic="others"), []),
    ],
)
def test_a_source_is_held_against_its_own_topics(source: Source, topics: list[str]) -> None:
    found = TopicSideOutput.of(source, PipelineSettings("shop")).spans_of(SPANS)
    assert sorted(found) == topics


def test_a_recreated_topic_begins_at_its_beginning() -> None:
    source = Source("orders", Location("f", 1), topic="orders")
    found = TopicSideOutput.of(source, PipelineSettings("shop")).spans_of(SPANS)
    assert found == {"orders": {"0": (3, 9), "1": (0, 2)}}


def test_sources_that_read_alike_find_the_same_records_once() -> None:
    """Two of one topic with rules of their own, and one that has another schema."""
    place, settings = Location("f", 1), PipelineSettings("shop")
    sources = (
        Source("big", place, topic="orders", format="json", schema="id INT", where="id > 9"),
        Source(
            "small",
            place,
            topic="orders",
            format="json",
            schema="id INT",
            options={"metadataPrefix": "_", "MaxOffsetsPerTrigger": "5"},
        ),
        Source("other", place, topic="orders", format="json", schema="id STRING"),
    )
    topics = tuple(TopicSideOutput.of(source, settings) for source in sources)
    side_outputs = SideOutputs(SideOutput("notes", "place", "staging.o", "f"), topics)
    found = [side_outputs.side_output_of(source.name) for source in sources]
    assert [one and one.notes for one in found] == ["notes/big", "notes/big", "notes/other"]
    assert [one and one.source for one in found] == ["big", "small", "other"]
