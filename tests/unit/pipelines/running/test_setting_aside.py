"""Which part of a batch is a source's, and which notes are of the batch."""

import pytest

from headrace.pipelines.model import PipelineSettings, Place, Source
from headrace.pipelines.running.setting_aside import TopicAside

SPANS = {"orders": {"0": (3, 9), "1": (9, 2)}, "prices": {"0": (0, 1)}}


@pytest.mark.parametrize(
    ("source", "topics"),
    [
        (Source("orders", Place("f", 1), topic="orders"), ["orders"]),
        (Source("both", Place("f", 1), topic="orders, prices"), ["orders", "prices"]),
        (Source("like", Place("f", 1), topic_pattern="pri.*"), ["prices"]),
        (Source("other", Place("f", 1), topic="others"), []),
    ],
)
def test_a_source_is_held_against_its_own_topics(source: Source, topics: list[str]) -> None:
    found = TopicAside.of(source, PipelineSettings("shop")).spans_of(SPANS)
    assert sorted(found) == topics


def test_a_topic_that_was_made_anew_begins_at_its_beginning() -> None:
    source = Source("orders", Place("f", 1), topic="orders")
    found = TopicAside.of(source, PipelineSettings("shop")).spans_of(SPANS)
    assert found == {"orders": {"0": (3, 9), "1": (0, 2)}}
