"""Spark's DDL text, read into Arrow schemas."""

import pyarrow as pa
import pytest

from headrace.spark.decoding.ddl import ddl_of, schema_of
from headrace.spark.decoding.errors import InvalidSchema

UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("ddl", "type_"),
    [
        ("boolean", pa.bool_()),
        ("TINYINT", pa.int8()),
        ("byte", pa.int8()),
        ("Short", pa.int16()),
        ("INT", pa.int32()),
        ("INTEGER", pa.int32()),
        ("LONG", pa.int64()),
        ("BIGINT", pa.int64()),
        ("REAL", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("STRING", pa.string()),
        ("VARCHAR(20)", pa.string()),
        ("BINARY", pa.binary()),
        ("DATE", pa.date32()),
        ("TIMESTAMP", UTC),
        ("TIMESTAMP_NTZ", pa.timestamp("us")),
        ("DECIMAL", pa.decimal128(10, 0)),
        ("DECIMAL(12)", pa.decimal128(12, 0)),
        ("numeric(38, 18)", pa.decimal128(38, 18)),
        ("ARRAY<INT>", pa.list_(pa.field("element", pa.int32()))),
        (
            "MAP<STRING, ARRAY<DATE>>",
            pa.map_(pa.string(), pa.list_(pa.field("element", pa.date32()))),
        ),
        ("STRUCT<a: INT, `b c` STRING>", pa.struct([("a", pa.int32()), ("b c", pa.string())])),
        ("STRUCT<>", pa.struct([])),
    ],
)
def test_a_type_is_read_as_spark_reads_it(ddl: str, type_: pa.DataType) -> None:
    assert schema_of(f"x {ddl}") == pa.schema([pa.field("x", type_)])


def test_columns_have_names_nullability_and_comments() -> None:
    schema = schema_of("id: BIGINT NOT NULL COMMENT 'the \\'key\\'',\n `a``b` string")
    assert schema.names == ["id", "a`b"]
    assert not schema.field("id").nullable
    assert schema.field("id").metadata == {b"comment": b"the 'key'"}
    assert schema.field("a`b").nullable


def test_a_type_is_written_as_it_is_read() -> None:
    ddl = "STRUCT<a: ARRAY<DECIMAL(10,2)>, m: MAP<STRING, TIMESTAMP>>"
    assert ddl_of(schema_of(f"x {ddl}").field("x").type) == ddl


@pytest.mark.parametrize(
    ("ddl", "why"),
    [
        ("", "no columns"),
        ("id", "needs a type"),
        ("id BIGINT,", "needs a column's name"),
        ("id BIGINT name STRING", "needs a `,`"),
        ("id NUMBER", "the type NUMBER"),
        ("id BIGINT, id INT", "the column `id` twice"),
        ("x DECIMAL(39, 2)", "DECIMAL"),
        ("x DECIMAL(5, 6)", "DECIMAL"),
        ("x DECIMAL(a)", "where a number belongs"),
        ("x ARRAY<INT", "needs a `>`"),
        ("x MAP<STRING>", "needs a `,`"),
        ("x INT NOT", "needs a type"),
        ("x INT NOT y", "NOT without NULL"),
        ("x INT COMMENT y", "quoted comment"),
        ("x INT; DROP", "';'"),
        ("x " + "ARRAY<" * 50 + "INT" + ">" * 50, "nests types more than 32 deep"),
    ],
)
def test_an_invalid_schema_is_refused_with_the_reason(ddl: str, why: str) -> None:
    with pytest.raises(InvalidSchema, match=why):
        schema_of(ddl)
