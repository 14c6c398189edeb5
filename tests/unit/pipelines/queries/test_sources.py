"""Topics as options of Spark's readers."""

from pathlib import Path

import pytest

from headrace.pipelines.analysing.stand_ins import source_schema
from headrace.pipelines.model import Location, PipelineSettings, Source
from headrace.pipelines.queries.sources import (
    begins_with_the_log,
    by_cluster,
    has_headers,
    source_options,
    span_options,
)
from headrace.spark.topic_patterns import is_like

PLACE = Location("pipeline.toml", 1)
SETTINGS = PipelineSettings(name="shop", lake="lake", bootstrap="127.0.0.1:9092")


def test_bytes_of_a_topic_come_with_their_headers_by_default() -> None:
    """ARC-4: the raw zone keeps records unchanged."""
    assert source_options(Source("orders", PLACE), SETTINGS)["includeHeaders"] == "true"
    assert source_schema(Source("orders", PLACE), SETTINGS).names[-1] == "headers"
    without = Source("orders", PLACE, options={"includeheaders": "false"})
    assert "headers" not in source_schema(without, SETTINGS).names


@pytest.mark.parametrize("connector", ["headrace", "kafka"])
def test_both_connectors_bring_headers(connector: str) -> None:
    assert has_headers(Source("orders", PLACE, connector=connector))


def test_decoded_topics_have_headers_only_if_asked_for() -> None:
    source = Source("orders", PLACE, format="json", schema="id BIGINT")
    assert "includeHeaders" not in source_options(source, SETTINGS)


def test_options_of_a_source_override_defaults_in_any_case() -> None:
    given = {"STARTINGOFFSETS": "latest", "includeheaders": "false"}
    found = source_options(Source("orders", PLACE, options=given), SETTINGS, Path("starts"))
    assert {
        name: value for name, value in found.items() if name.lower() in map(str.lower, given)
    } == given


def test_a_batch_between_offsets_ignores_the_start_of_its_source() -> None:
    given = {
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "StartingTimestamp": "1700000000000",
        "format": "json",
    }
    found = span_options(given, {"orders": {"1": (3, 9)}, "prices": {}})
    assert found == {
        "format": "json",
        "assign": '{"orders": [1]}',
        "startingOffsets": '{"orders": {"1": 3}}',
        "endingOffsets": '{"orders": {"1": 9}}',
    }


def test_a_pattern_of_a_pipeline_is_of_whole_names_by_either_connector() -> None:
    source = Source("orders", PLACE, topic_pattern="orders|(?:bills)-.*")
    pattern = source_options(source, SETTINGS)["subscribePattern"]
    names = ["orders", "bills-eu", "orders-dead", "old-orders"]
    assert [is_like(pattern, name) for name in names] == [True, True, False, False]


def test_topics_are_checked_at_their_own_cluster() -> None:
    """A topic of two clusters is not looked up, as the right one is unknown."""
    elsewhere = {"kafka.bootstrap.servers": "127.0.0.2:9092", "kafka.sasl.username": "visitor"}
    sources = [
        Source("orders", PLACE, topic="orders, both"),
        Source("visits", PLACE, topic_pattern="visits-.*", options=elsewhere),
        Source("both", PLACE, options=elsewhere),
        Source("again", PLACE, topic="orders", options={"kafka.fetch.min.bytes": "9"}),
    ]
    own = {"bootstrap.servers": "127.0.0.1:9092"}
    other = {"bootstrap.servers": "127.0.0.2:9092", "sasl.username": "visitor"}
    topics = ["visits-1", "orders", "both", "visits-2", "unknown"]
    assert by_cluster(topics, sources, SETTINGS) == [
        (other, ["visits-1", "visits-2"]),
        (own, ["orders"]),
    ]


@pytest.mark.parametrize(
    ("options", "is_whole"),
    [
        ({}, True),
        ({"StartingOffsets": " Earliest"}, True),
        ({"startingOffsets": "latest"}, False),
        ({"startingTimestamp": "0"}, False),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": 0}}'}, False),
        ({"startingOffsets": '{"orders": {"0": 5}}'}, False),
    ],
)
def test_a_source_begins_with_the_log_by_default(options: dict[str, str], is_whole: bool) -> None:
    assert begins_with_the_log(Source("orders", PLACE, options=options)) is is_whole
