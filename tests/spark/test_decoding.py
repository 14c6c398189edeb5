"""Payloads and files in Spark: decoders in its tasks, compared with its `from_json`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headrace.capture.files import CaptureFile
from headrace.spark.decoding.formats import decoder_of
from headrace.testing.process import BrokerProcess
from tests.spark.conftest import MakeTopic
from tests.spark.pipeline_folders import Folder, send
from tests.spark.source_topics import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = (
    "i INT, l BIGINT, d DOUBLE, f FLOAT, s STRING, b BOOLEAN, e DECIMAL(10,2), day DATE, "
    "t TIMESTAMP, n TIMESTAMP_NTZ, z BINARY, a ARRAY<INT>, m MAP<STRING, DOUBLE>, "
    "o STRUCT<x: INT, y: ARRAY<STRUCT<k: STRING>>>"
)
GOOD = [
    "{}",
    '{"i": 1, "l": -9223372036854775808, "d": 1e-7, "f": 0.5, "s": "x", "b": true}',
    '{"d": 3, "f": 2, "s": 12.5, "b": false, "unknown": {"i": [1, {"i": 2}]}}',
    '{"s": {"a":[1,2]}, "i": null, "a": [], "m": {}, "o": {}}',
    '{"s": "a\\"b\\\\\\u00e9\\ud83d\\ude00\\n", "i": 1, "i": 2}',
    '{"e": 12.345, "day": "2024-02-29", "t": "2026-11-17T09:18:17.123456Z"}',
    '{"e": "7.5", "t": "2026-11-17 09:18:17", "n": "2026-11-17T09:18:17.5"}',
    '{"e": -0.005, "t": 1700000000, "z": "aGk=", "d": "NaN"}',
    '{"d": "-Infinity", "t": "2026-11-17T09:18:17+02:00", "day": "1969-12-31"}',
    '{"a": [1, null, 3], "m": {"k": 1.5, "l": null}, "o": {"x": 1, "y": [{"k": "v"}, null, {}]}}',
    ' {\n"i" :\t7 } ',
]
BAD = [
    '{"i": 1',
    "[1",
    '{"i": "1"}',
    '{"i": 2147483648}',
    '{"i": 1.5}',
    '{"b": "yes"}',
    '{"day": "2023-02-30"}',
    '{"t": "noon"}',
    '{"e": 1e12}',
    '{"a": 1}',
    '{"o": [1]}',
    '{"m": {"k": "x"}}',
]

FIELDS = [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]
AVRO = json.dumps({"type": "record", "name": "Order", "fields": FIELDS})
PROTO = """
syntax = "proto3";
message Other { int32 x = 1; }
message Order { int64 id = 1; optional string note = 2; }
"""
GIVEN = {"avro": {"schema": AVRO}, "protobuf": {"schema": PROTO, "message": "Order"}}
PAYLOADS = {
    "avro": [b"\x0e\x02\x02n", b"\x10\x02\xff", b"\x10\x00"],
    "protobuf": [b"\x08\x07\x12\x01n", b"\x08\x08\x12\xff", b"\x08\x08"],
}
"""In both formats: a 7 with the note n, an 8 with a truncated note, and an 8 without one."""
SOURCES = """
[pipeline]
name = "given"
[sources.avro]
topic = "{avro}"
format = "avro"
schema = "order.avsc"
[sources.protobuf]
topic = "{protobuf}"
format = "protobuf"
schema = "order.proto"
options = {{ message = "Order" }}
"""
TABLES = """
CREATE STREAMING TABLE staging.avro AS SELECT id, note FROM STREAM(sources.avro);
CREATE STREAMING TABLE staging.protobuf AS SELECT id, note FROM STREAM(sources.protobuf);
"""


@pytest.fixture(scope="module")
def sparks_rows(spark: "SparkSession") -> dict[str, tuple[Any, str | None]]:
    """Return the result of `from_json` for each text, and the text itself if it is corrupt."""
    from pyspark.sql.functions import from_json

    frame = spark.createDataFrame([(text,) for text in GOOD + BAD], "value STRING")
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "corrupt"}
    parsed = frame.select("value", from_json("value", f"{DDL}, corrupt STRING", options).alias("r"))
    return {row["value"]: parted(row["r"].asDict(True)) for row in parsed.collect()}


def parted(row: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    corrupt = row.pop("corrupt")
    return row, corrupt


def our_row(text: str) -> tuple[dict[str, Any], str | None]:
    decoder = decoder_of({"format": "json", "schema": DDL})
    assert decoder is not None
    decoded = decoder.decode(pa.array([text.encode()]))
    return decoded.columns.to_pylist()[0], decoded.errors.to_pylist()[0]


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    """Spark's Python rows have times without a zone, and NaN equals nothing."""
    found = {
        name: value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value
        for name, value in row.items()
    }
    if isinstance(found["m"], list):
        found["m"] = dict(found["m"])
    found["d"] = repr(found["d"])
    found["z"] = None if found["z"] is None else bytes(found["z"])
    return found


@pytest.mark.parametrize("text", GOOD)
def test_a_good_payload_is_read_as_from_json_reads_it(
    text: str, sparks_rows: dict[str, tuple[Any, str | None]]
) -> None:
    ours, error = our_row(text)
    theirs, corrupt = sparks_rows[text]
    assert (error, corrupt) == (None, None)
    assert comparable(ours) == comparable(theirs)


@pytest.mark.parametrize("text", BAD)
def test_a_payload_that_is_corrupt_for_from_json_has_an_error(
    text: str, sparks_rows: dict[str, tuple[Any, str | None]]
) -> None:
    assert sparks_rows[text][1] == text
    assert our_row(text)[1] is not None


def test_avro_and_protobuf_are_read_by_given_schemas(
    spark: "SparkSession", broker: BrokerProcess, make_topic: MakeTopic, tmp_path: Path
) -> None:
    """ARC-4: text of a schema in a reader's options, and files beside a pipeline."""
    topics = {name: make_topic(name) for name in GIVEN}
    folder = Folder(tmp_path / "pipeline", broker, spark).write(
        pipeline_toml=SOURCES.format(**topics),
        tables_sql=TABLES,
        order_avsc=AVRO,
        order_proto=PROTO,
    )
    for name, topic in topics.items():
        send(broker, topic, PAYLOADS[name])
    folder.once()
    for name, topic in topics.items():
        torn = PAYLOADS[name][1]
        rows = read(spark, broker.bootstrap_servers, topic, format=name, **GIVEN[name])
        first, bad, last = rows.orderBy("offset").collect()
        assert (first["id"], first["note"], first["_error"]) == (7, "n", None)
        assert (last["id"], last["note"], last["_error"]) == (8, None, None)
        assert (bad["id"], bad["note"], bytes(bad["_payload"])) == (None, None, torn)
        assert bad["_error"].startswith("not a ")
        assert folder.rows(f"staging.{name}", "id", "note") == [(7, "n"), (8, None)]
        assert folder.rows(f"quarantine.staging__{name}", "reason", "payload", "offset") == [
            (bad["_error"], torn, 1)
        ]


def test_spark_reads_captured_parquet(spark: "SparkSession", tmp_path: Path) -> None:
    """SCH-5, CLD-1: other programs read captured files."""

    class Record:
        """A record as a consumer hands it out."""

        def topic(self) -> str:
            return "t"

        def partition(self) -> int:
            return 3

        def offset(self) -> int:
            return 5

        def timestamp(self) -> tuple[int, int]:
            return 1, 1_700_000_000_123

        def key(self) -> bytes:
            return b"k"

        def value(self) -> bytes:
            return b"v"

        def headers(self) -> list[tuple[str, bytes | None]]:
            return [("h", None)]

    record: Any = Record()
    file = CaptureFile(tmp_path, 5, "parquet")
    file.write([record])
    file.complete("x.parquet")
    (row,) = spark.read.parquet(str(tmp_path)).collect()
    assert (row["partition"], row["offset"], bytes(row["key"])) == (3, 5, b"k")
    assert row["headers"][0].asDict() == {"key": "h", "value": None}
    assert row["timestamp"].microsecond == 123_000
