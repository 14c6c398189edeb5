"""The decoder of a source's options, and the errors for wrong ones."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from headrace.spark.decoding.errors import InvalidFormatOption
from headrace.spark.decoding.formats import decoder_of

AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]})


def test_without_a_format_payloads_stay_bytes() -> None:
    assert decoder_of({"subscribe": "t"}) is None
    assert decoder_of({"format": "bytes"}) is None


def test_option_names_have_any_case() -> None:
    decoder = decoder_of({"FORMAT": "CSV", "Schema": "a INT, b STRING", "NULLVALUE": "-"})
    assert decoder is not None
    assert decoder.decode(pa.array([b"1,-"])).columns.to_pylist() == [{"a": 1, "b": None}]


def test_a_schema_may_be_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "r.avsc"
    path.write_text(AVRO)
    decoder = decoder_of({"format": "avro", "schema": str(path)})
    path.unlink()  # A worker has no such file.
    assert decoder is not None
    assert decoder.decode(pa.array([b"\x02"])).columns.to_pylist() == [{"x": 1}]


def test_protobuf_takes_text_and_a_message() -> None:
    text = 'syntax = "proto3"; message A { int32 x = 1; } message B { int64 y = 1; }'
    decoder = decoder_of({"format": "protobuf", "schema": text, "message": "B"})
    assert decoder is not None
    assert decoder.schema == pa.schema([("y", pa.int64())])


def test_a_registry_may_be_among_the_clients_properties() -> None:
    with pytest.raises(InvalidFormatOption, match="is the address of a registry"):
        decoder_of({"format": "avro", "schema": AVRO}, {"schema.registry.url": "nowhere"})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"format": "xml"}, "use one of bytes, json, csv, avro, protobuf"),
        ({"format": "json"}, "json needs the option schema, such as `id BIGINT"),
        ({"format": "csv", "schema": "a INT", "delimiter": "||"}, "delimiter is one ASCII sign"),
        (
            {"format": "csv", "schema": "a INT", "header": "yes"},
            "header is .* must be true or false",
        ),
        ({"format": "csv", "schema": "a INT", "escape": "ab"}, "escape is one ASCII sign"),
        ({"format": "csv", "schema": "a INT", "escape": ","}, "other than the delimiter"),
        (
            {"format": "avro", "schema": "{}", "recursiveFieldMaxDepth": "16"},
            "recursiveFieldMaxDepth is a number up to 15, not '16'",
        ),
        ({"format": "avro", "schema": "/nowhere/x.avsc"}, "neither a schema nor a file"),
        (
            {"format": "csv", "schema": "a INT", "schema.registry.url": "http://h"},
            "does not support a registry",
        ),
    ],
)
def test_invalid_options_are_refused_with_valid_ones(options: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidFormatOption, match=why):
        decoder_of(options)


def test_planning_a_query_does_not_load_the_compiler() -> None:
    program = (
        "import sys; from headrace.spark.decoding.formats import decoder_of;"
        "decoder_of({'format': 'json', 'schema': 'a INT'}).schema;"
        "decoder_of({'format': 'csv', 'schema': 'a INT'}).schema;"
        f"decoder_of({{'format': 'avro', 'schema': {AVRO!r}}}).schema;"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_columns_have_just_the_arrow_types_that_spark_has() -> None:
    decoder = decoder_of(
        {
            "format": "json",
            "schema": "a INT NOT NULL, s STRUCT<x: TINYINT, y: ARRAY<STRUCT<z: STRING>>>,"
            "m MAP<STRING, DECIMAL(10,2)>, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, b BINARY",
        }
    )
    assert decoder is not None
    sparks = to_arrow_schema(from_arrow_schema(decoder.schema), timezone="UTC")
    assert sparks == decoder.schema
