"""Profiles of a source, measured from a sample."""

import random
import tomllib
from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pytest

from headrace.client.payload_shapes import shape_of
from headrace.client.profiles import (
    Profile,
    Sampled,
    format_of,
    frequency_of,
    heterogeneity_of,
    keys_of,
    profile_of,
    sizes_of,
    suggestion_of,
    velocity_of,
)
from headrace.spark.decoding.formats import decoder_of
from headrace.spark.source.rows import row_schema


def records(times_ms: Sequence[int], partition: int = 0, size: int = 100) -> list[Sampled]:
    return [Sampled(partition, time_ms, None, b"x" * size) for time_ms in times_ms]


def profiled(*values: bytes | None, topic: str = "orders") -> Profile:
    sample = [Sampled(0, 1000 * index, b"k", value) for index, value in enumerate(values)]
    return profile_of(topic, sample, {0: len(values)}, ["none"], None)


def test_velocity_is_records_and_bytes_per_second_of_their_own_time() -> None:
    """ARC-6: velocity and bandwidth."""
    found = velocity_of(records(range(0, 10_001, 100)))
    assert found.records_per_s == pytest.approx(10)
    assert found.bytes_per_s == pytest.approx(1000)
    assert found.megabits_per_s == pytest.approx(0.008)
    assert found.span_s == 10


def test_velocity_adds_rates_of_partitions_each_over_its_own_span() -> None:
    found = velocity_of(records(range(0, 1001, 100)) + records(range(0, 100_001, 1000), 1))
    assert found.records_per_s == pytest.approx(11)


def test_velocity_is_unknown_if_all_records_have_one_time() -> None:
    assert velocity_of(records([5, 5, 5])).records_per_s is None


def test_sizes_are_given_by_quantiles() -> None:
    found = sizes_of(range(1, 101))
    assert (found.min, found.p50, found.p99, found.max, found.mean) == (1, 50, 99, 100, 50.5)


def test_a_record_of_every_part_counts_towards_its_size() -> None:
    assert Sampled(0, 0, b"key", b"value", 7).size_bytes == 15


def test_gaps_distinguish_clocks_chance_and_bursts() -> None:
    """ARC-6: frequency."""
    chance = random.Random(7)
    moment, times = 0.0, []
    for _ in range(5000):
        moment += chance.expovariate(0.001)
        times.append(int(moment))
    bursts = [second * 60_000 + place for second in range(100) for place in range(20)]
    assert frequency_of(range(0, 100_000, 100)).pattern == "regular"
    assert frequency_of(times).pattern == "irregular"
    assert frequency_of(bursts).pattern == "bursty"
    assert frequency_of([1, 1]).pattern == "unknown"


def test_keys_show_skew_and_the_share_of_nulls() -> None:
    found = keys_of([b"a"] * 6 + [b"b", b"\xff"] + [None] * 2, {0: 90, 1: 10})
    assert found.distinct == 3
    assert found.null_share == pytest.approx(0.2)
    assert found.top[0] == ("a", 0.6)
    assert ("0xff", 0.1) in found.top
    assert found.partition_skew == pytest.approx(1.8)


def test_heterogeneity_is_the_share_of_the_main_shape() -> None:
    """ARC-6: heterogeneity."""
    shapes = [shape_of(value) for value in (b'{"a":1}', b'{"a":2}', b'{"b":1}', b"text", None)]
    found = heterogeneity_of(shapes)
    assert (found.main_shape_share, found.shapes) == (0.5, 3)


def test_csv_that_does_not_hold_together_is_text() -> None:
    values: list[bytes | None] = [b"a,b", b"a,b,c"]
    found = format_of([shape_of(value) for value in values], values)
    assert (found.kind, found.structure) == ("text", "unstructured")


@pytest.mark.parametrize(
    ("values", "structure", "source"),
    [
        (
            [b'{"id": 1, "at": "2026-11-17T09:00:00Z"}', None, b'{"id": 2, "name": "\\"x\\""}'],
            "semi-structured",
            {"format": "json", "schema": "id BIGINT, at TIMESTAMP, name STRING"},
        ),
        (
            [b"1;x", b"2;y"],
            "structured",
            {"format": "csv", "schema": "c1 BIGINT, c2 STRING", "options": {"delimiter": ";"}},
        ),
        (
            [b"\x00\x00\x00\x00\x05abc"],
            "structured",
            {"format": "avro", "options": {"schema.registry.url": "http://127.0.0.1:8081"}},
        ),
        (
            [b'\x00\x00\x00\x00\x05{"a": 1}'],
            "structured",
            {"format": "json", "options": {"schema.registry.url": "http://127.0.0.1:8081"}},
        ),
        (
            [b"\x00\x00\x00\x00\x05\x00\x08\x96\x01\x12\x02hi", b"\x00\x00\x00\x00\x05\x00"],
            "structured",
            {"format": "protobuf", "options": {"schema.registry.url": "http://127.0.0.1:8081"}},
        ),
        (
            [b'{"Timestamp": 1, "kafka_offset": 2}'],
            "semi-structured",
            {
                "format": "json",
                "schema": "Timestamp BIGINT, kafka_offset BIGINT",
                "options": {"metadataPrefix": "_kafka_"},
            },
        ),
        ([b"plain text"], "unstructured", {"format": "bytes"}),
        ([b"\xff"], "unstructured", {"format": "bytes"}),
        ([None], "unknown", {"format": "bytes"}),
        ([b"[1]"], "semi-structured", {"format": "bytes"}),
    ],
)
def test_a_profile_ends_with_a_source_that_reads_it(
    values: list[bytes | None], structure: str, source: dict[str, object]
) -> None:
    """ARC-6: formats, and the one that pipelines read them as."""
    found = profiled(*values)
    assert found.format.structure == structure
    assert tomllib.loads(found.suggestion) == {"sources": {"orders": {"topic": "orders", **source}}}


@pytest.mark.parametrize(
    "values",
    [
        [b'{"timestamp": "2026-03-01T12:00:00Z", "offset": 1}'],
        [b'{"Id": 1, "id": 2}', b'{"ID": 3, "in": {"a": 1, "A": 2}}'],
        [b'{"": 1, "a\xc3\xa9": 1, "in": {"": 1}}'],
        [b'{"day": "0000-00-00", "at": "2026-03-01T24:00:00Z", "n": 1%s}' % (b"0" * 40)],
        [b'"x,y",1', b'"z""w",2'],
        [b'.5,5.,1 ,"7"', b"1.5,2,3,8"],
        [b" 1\tx", b"2\t"],
        [b'"%s",1' % (b"x" * 200_000)],
    ],
)
def test_the_suggested_source_reads_the_profiled_records(values: list[bytes]) -> None:
    """ARC-6: as it is printed, without a name that Spark takes for another, or a row refused."""
    source = tomllib.loads(profiled(*values).suggestion)["sources"]["orders"]
    options = {"format": source["format"], "schema": source["schema"], **source.get("options", {})}
    decoder = decoder_of(options)
    assert decoder is not None
    assert decoder.decode(pa.array(values, pa.binary())).errors.null_count == len(values)
    schema = row_schema(decoder=decoder, prefix=options.get("metadataPrefix", ""))
    assert len({name.lower() for name in schema.names}) == len(schema)


def test_a_topic_of_any_name_gives_a_source_a_name() -> None:
    guess = profiled(b"x").format
    document = tomllib.loads(suggestion_of("9-web.logs", guess))
    assert document["sources"]["_9_web_logs"]["topic"] == "9-web.logs"


def test_a_profile_is_a_json_document() -> None:
    document = msgspec.json.decode(msgspec.json.encode(profiled(b'{"a": 1}')))
    assert document["format"]["schema"] == "a BIGINT"
