"""Decoders on any values and any bytes: what was written is read, all else is an error."""

import io
import json
import math
import struct
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.decoding.avro.decoder import AvroDecoder
from headrace.spark.decoding.avro.rows import RowReader
from headrace.spark.decoding.csv.decoder import CsvDecoder
from headrace.spark.decoding.ddl import schema_of
from headrace.spark.decoding.decoder import Decoded, Decoder
from headrace.spark.decoding.json.decoder import JsonDecoder
from headrace.spark.decoding.protobuf.decoder import ProtobufDecoder
from headrace.spark.decoding.protobuf.schemas import compile_proto

DDL = (
    "i BIGINT, d DOUBLE, s STRING, b BOOLEAN, a ARRAY<INT>, "
    "n STRUCT<x: INT, t: STRING>, m MAP<STRING, DOUBLE>, e DECIMAL(12,3), t TIMESTAMP, z BINARY"
)
JSON = JsonDecoder(schema_of(DDL))
CSV = CsvDecoder(schema_of("i BIGINT, d DOUBLE, s STRING, b BOOLEAN, e DECIMAL(20,2), t DATE"))
AVRO_SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "i", "type": "long"},
        {"name": "d", "type": "double"},
        {"name": "s", "type": ["null", "string"]},
        {"name": "b", "type": "boolean"},
        {"name": "y", "type": "bytes"},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}},
        {
            "name": "n",
            "type": [
                "null",
                {"type": "record", "name": "N", "fields": [{"name": "x", "type": "int"}]},
            ],
        },
    ],
}
NESTED_SCHEMA = {
    "type": "record",
    "name": "L",
    "fields": [
        {"name": "a", "type": {"type": "array", "items": "long"}},
        {"name": "m", "type": {"type": "map", "values": "string"}},
    ],
}
AVRO = AvroDecoder(json.dumps(AVRO_SCHEMA), json.dumps(AVRO_SCHEMA))
NESTED = AvroDecoder(json.dumps(NESTED_SCHEMA), json.dumps(NESTED_SCHEMA))
UNION_SCHEMA = {
    "type": "record",
    "name": "U",
    "fields": [
        {"name": "first", "type": "long"},
        {
            "name": "u",
            "type": [
                *("string", "null", "long", "double", "boolean"),
                {"type": "record", "name": "N", "fields": [{"name": "x", "type": ["null", "int"]}]},
            ],
        },
        {"name": "v", "type": ["int", "bytes"]},
    ],
}
TREE_SCHEMA = {
    "type": "record",
    "name": "T",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "next", "type": ["null", "T", "long"]},
        {"name": "children", "type": {"type": "array", "items": "T"}},
    ],
}
UNION = AvroDecoder(json.dumps(UNION_SCHEMA), json.dumps(UNION_SCHEMA))
TREE = AvroDecoder(json.dumps(TREE_SCHEMA), json.dumps(TREE_SCHEMA), recursive_depth_max=2)
ESCAPING = CsvDecoder(schema_of("s STRING, t STRING"), escape="\\")
PROTOBUF = ProtobufDecoder(
    compile_proto(
        'syntax = "proto3"; message M { int64 i = 1; repeated string s = 2; M2 n = 3; '
        "map<int32, double> m = 4; } message M2 { bytes b = 1; uint64 u = 2; }"
    ),
    "M",
)
DECODERS: dict[str, Decoder] = {
    "json": JSON, "csv": CSV, "avro": AVRO, "nested avro": NESTED, "protobuf": PROTOBUF,
    "union avro": UNION, "recursive avro": TREE, "escaping csv": ESCAPING,
}  # fmt: skip

int32s = st.integers(-(1 << 31), (1 << 31) - 1)
int64s = st.integers(-(1 << 63), (1 << 63) - 1)
doubles = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8"), max_size=20)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


json_records = st.fixed_dictionaries(
    {},
    optional={
        "i": maybe(int64s),
        "d": maybe(doubles),
        "s": maybe(texts),
        "b": maybe(st.booleans()),
        "a": maybe(st.lists(maybe(int32s), max_size=4)),
        "n": maybe(st.fixed_dictionaries({"x": maybe(int32s), "t": maybe(texts)})),
        "m": maybe(st.dictionaries(texts, doubles, max_size=3)),
        "unknown": st.recursive(st.none() | texts, lambda inner: st.lists(inner, max_size=3)),
    },
)
avro_records = st.fixed_dictionaries(
    {
        "i": int64s,
        "d": doubles,
        "s": maybe(texts),
        "b": st.booleans(),
        "y": st.binary(max_size=20),
        "e": st.sampled_from("ABC"),
        "n": maybe(st.fixed_dictionaries({"x": int32s})),
    }
)
nested_records = st.fixed_dictionaries(
    {"a": st.lists(int64s, max_size=4), "m": st.dictionaries(texts, texts, max_size=3)}
)
union_records = st.fixed_dictionaries(
    {
        "first": int64s,
        "u": st.none()
        | texts
        | int64s
        | doubles
        | st.booleans()
        | st.fixed_dictionaries({"x": maybe(int32s)}),
        "v": int32s | st.binary(max_size=5),
    }
)
styles = st.sampled_from(
    [
        {"ensure_ascii": True},
        {"ensure_ascii": False, "indent": 1},
        {"ensure_ascii": False, "separators": (",", ":")},
    ]
)


def decoded_whole(decoder: Decoder, payloads: list[bytes | None]) -> Decoded:
    """Decode payloads: one row per payload, and a bad row has no values."""
    decoded = decoder.decode(pa.array(payloads, pa.binary()))
    decoded.columns.validate(full=True)
    decoded.errors.validate(full=True)
    assert decoded.columns.schema == decoder.schema
    assert len(decoded.errors) == len(decoded.columns) == len(payloads)
    for row, error in zip(decoded.columns.to_pylist(), decoded.errors.to_pylist(), strict=True):
        assert error is None or set(row.values()) == {None}
    return decoded


def encode(schema: dict[str, Any], value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, float):
        return struct.pack("d", found) == struct.pack("d", wanted)
    return bool(found == wanted)


@given(records=st.lists(json_records, max_size=5), style=styles)
def test_decoded_json_equals_the_written_values(
    records: list[dict[str, Any]], style: dict[str, Any]
) -> None:
    decoded = decoded_whole(JSON, [json.dumps(record, **style).encode() for record in records])
    assert decoded.errors.null_count == len(records)
    for row, record in zip(decoded.columns.to_pylist(), records, strict=True):
        for name in ("i", "d", "s", "b", "a", "n"):
            assert same(row[name], record.get(name))
        pairs = record.get("m")
        assert row["m"] == (None if pairs is None else list(pairs.items()))


@given(
    value=st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**8), max_value=10**8
    )
)
def test_decimals_are_exact(value: Any) -> None:
    decoded = decoded_whole(JSON, [f'{{"e": {value}}}'.encode()])
    assert decoded.columns.column("e").to_pylist() == [value]


@given(value=doubles, digits=st.integers(1, 25))
def test_doubles_are_rounded_as_python_rounds_them(value: float, digits: int) -> None:
    text = f"{value:.{digits}e}"
    (found,) = decoded_whole(JSON, [f'{{"d": {text}}}'.encode()]).columns.column("d").to_pylist()
    assert same(found, float(text))


@given(st.datetimes())
def test_timestamps_are_exact(moment: Any) -> None:
    payload = json.dumps({"t": f"{moment.isoformat()}Z"}).encode()
    (found,) = decoded_whole(JSON, [payload]).columns.column("t").to_pylist()
    assert found.replace(tzinfo=None) == moment


@given(st.lists(st.tuples(int64s, doubles, texts.filter(len), st.booleans()), max_size=5))
def test_decoded_csv_equals_the_written_values(records: list[tuple[int, float, str, bool]]) -> None:
    quoted = [(i, d, '"' + s.replace('"', '""') + '"', b) for i, d, s, b in records]
    payloads: list[bytes | None] = [f"{i},{d},{s},{b},,".encode() for i, d, s, b in quoted]
    decoded = decoded_whole(CSV, payloads)
    assert decoded.errors.null_count == len(records)
    assert [tuple(row.values())[:4] for row in decoded.columns.to_pylist()] == records


@given(st.lists(avro_records, max_size=5))
def test_decoded_flat_avro_equals_the_written_values(records: list[dict[str, Any]]) -> None:
    decoded = decoded_whole(AVRO, [encode(AVRO_SCHEMA, record) for record in records])
    assert decoded.errors.null_count == len(records)
    assert decoded.columns.to_pylist() == records


@given(payloads=st.lists(union_records.map(lambda one: encode(UNION_SCHEMA, one)), max_size=5))
def test_unions_are_read_alike_by_columns_and_row_by_row(payloads: list[bytes]) -> None:
    decoded = decoded_whole(UNION, list(payloads))
    assert decoded.errors.null_count == len(payloads)
    rows = [RowReader(UNION.writer, UNION.reader).record(payload) for payload in payloads]
    assert decoded.columns.to_pylist() == pa.RecordBatch.from_pylist(rows, UNION.schema).to_pylist()


@given(payload=st.binary(max_size=30))
def test_columns_and_rows_agree_which_bytes_are_a_record(payload: bytes) -> None:
    decoded = decoded_whole(UNION, [payload])
    try:
        row = RowReader(UNION.writer, UNION.reader).record(payload)
    except ValueError:
        assert decoded.errors.null_count == 0
    else:
        (found,) = decoded.columns.to_pylist()
        (wanted,) = pa.RecordBatch.from_pylist([row], UNION.schema).to_pylist()
        assert repr(found) == repr(wanted)  # In which a NaN is like another.


@given(st.lists(st.tuples(texts.filter(len), texts.filter(len)), max_size=5))
def test_decoded_escaped_csv_equals_the_written_values(records: list[tuple[str, str]]) -> None:
    payloads: list[bytes | None] = [
        ",".join('"' + escaped(text) + '"' for text in record).encode() for record in records
    ]
    decoded = decoded_whole(ESCAPING, payloads)
    assert [tuple(row.values()) for row in decoded.columns.to_pylist()] == records


@given(st.lists(nested_records, max_size=5))
def test_decoded_nested_avro_equals_the_written_values(records: list[dict[str, Any]]) -> None:
    decoded = decoded_whole(NESTED, [encode(NESTED_SCHEMA, record) for record in records])
    assert decoded.errors.null_count == len(records)
    rows = [{**row, "m": dict(row["m"])} for row in decoded.columns.to_pylist()]
    assert rows == records


@pytest.mark.parametrize("name", DECODERS)
@given(payloads=st.lists(maybe(st.binary(max_size=40)), max_size=6))
def test_any_bytes_are_rows_or_errors(name: str, payloads: list[bytes | None]) -> None:
    decoded_whole(DECODERS[name], payloads)


@given(text=st.text('{}[]",:\\u0123456789abcdeEtrufalsn.-+ \n"is', max_size=40))
def test_texts_are_valid_json_exactly_if_python_accepts_them(text: str) -> None:
    """The judge is a strict parser: what it takes is no syntax error here, and the reverse."""
    decoded = decoded_whole(JsonDecoder(schema_of("nothing STRING")), [text.encode()])
    (error,) = decoded.errors.to_pylist()
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except ValueError:
        assert error is not None
    else:
        assert (error is None) == (value is None or isinstance(value, dict))


@given(record=json_records, data=st.data())
def test_a_damaged_json_text_is_never_decoded_as_another_type(
    record: dict[str, Any], data: st.DataObject
) -> None:
    text = bytearray(json.dumps(record).encode())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.integers(0, 255))
    decoded_whole(JSON, [bytes(text)])


@given(record=avro_records, data=st.data())
def test_a_cut_avro_record_is_an_error(record: dict[str, Any], data: st.DataObject) -> None:
    payload = encode(AVRO_SCHEMA, record)
    cut = data.draw(st.integers(0, len(payload) - 1))
    decoded = decoded_whole(AVRO, [payload[:cut]])
    assert decoded.errors.null_count == 0


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON: {math.nan}")
