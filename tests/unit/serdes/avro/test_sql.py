"""Avro schemas of tables, and tables of Avro schemas."""

import json
from typing import Any

import pytest

from headrace.serdes.avro.parsing import parse
from headrace.serdes.avro.sql import avro_of_table, table_of_avro
from headrace.serdes.schemas import InvalidSchema

EMPLOYEES = """
CREATE TABLE employees (
    id INTEGER NOT NULL,
    name VARCHAR(100) NOT NULL,
    email VARCHAR(255),
    salary DECIMAL(10, 2) NOT NULL DEFAULT 0.00,
    hired DATE NOT NULL DEFAULT DATE '2020-01-01',
    is_active BOOLEAN NOT NULL DEFAULT TRUE,
    PRIMARY KEY (id)
);
"""
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}


def column(text: str) -> dict[str, Any]:
    """Return the field of a table with this column."""
    found: dict[str, Any] = json.loads(avro_of_table(f"CREATE TABLE t ({text})").canonical())
    field: dict[str, Any] = found["fields"][0]
    return field


def test_a_table_is_a_record() -> None:
    """SCH-2"""
    assert json.loads(avro_of_table(EMPLOYEES).canonical()) == {
        "type": "record",
        "name": "employees",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "name", "type": "string"},
            {"name": "email", "type": ["null", "string"], "default": None},
            {"name": "salary", "type": DECIMAL, "default": "\u0000"},
            {"name": "hired", "type": {"type": "int", "logicalType": "date"}, "default": 18262},
            {"name": "is_active", "type": "boolean", "default": True},
        ],
    }


def test_a_record_is_a_table_that_is_the_record_again() -> None:
    """SCH-2"""
    schema = avro_of_table(EMPLOYEES)
    assert avro_of_table(table_of_avro(schema)).canonical() == schema.canonical()


def test_the_table_of_a_schema_is_sql_of_the_standard() -> None:
    """SCH-2"""
    assert table_of_avro(avro_of_table(EMPLOYEES)) == (
        "CREATE TABLE employees (\n"
        "    id INTEGER NOT NULL,\n"
        "    name VARCHAR NOT NULL,\n"
        "    email VARCHAR,\n"
        "    salary DECIMAL(10, 2) NOT NULL DEFAULT 0.00,\n"
        "    hired DATE NOT NULL DEFAULT DATE '2020-01-01',\n"
        "    is_active BOOLEAN NOT NULL DEFAULT TRUE\n"
        ");\n"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a SMALLINT NOT NULL", "int"),
        ("a BIGSERIAL PRIMARY KEY", "long"),
        ("a INT UNSIGNED NOT NULL", "long"),
        ("a FLOAT(24) NOT NULL", "float"),
        ("a DOUBLE PRECISION NOT NULL", "double"),
        ("a character varying(5) NOT NULL", "string"),
        ('a TEXT COLLATE "C" NOT NULL', "string"),
        ("a BYTEA NOT NULL", "bytes"),
        ("a BIT(1) NOT NULL", "boolean"),
        ("a UUID NOT NULL", {"type": "string", "logicalType": "uuid"}),
        ("a TIME(3) NOT NULL", {"type": "int", "logicalType": "time-millis"}),
        ("a TIMESTAMP NOT NULL", {"type": "long", "logicalType": "local-timestamp-micros"}),
        ("a DATETIME(3) NOT NULL", {"type": "long", "logicalType": "local-timestamp-millis"}),
        (
            "a TIMESTAMP(6) WITH TIME ZONE NOT NULL",
            {"type": "long", "logicalType": "timestamp-micros"},
        ),
        ("a TEXT[] NOT NULL", {"type": "array", "items": ["null", "string"]}),
        ("a INT ARRAY NOT NULL", {"type": "array", "items": ["null", "int"]}),
        ("a ENUM('X','Y') NOT NULL", {"type": "enum", "name": "t_a", "symbols": ["X", "Y"]}),
        ("a ENUM('x y') NOT NULL", "string"),
        ("a INT NOT NULL CHECK (a > 0) REFERENCES other(id)", "int"),
    ],
)
def test_a_columns_type_has_a_type_in_avro(text: str, kind: Any) -> None:
    """SCH-2"""
    assert column(text)["type"] == kind


@pytest.mark.parametrize(
    ("text", "kind", "default"),
    [
        ("a INT DEFAULT -5", ["int", "null"], -5),
        ("a INT DEFAULT NULL", ["null", "int"], None),
        ("a INT DEFAULT nextval('s')", ["null", "int"], None),
        ("a TEXT DEFAULT 'it''s'::text", ["string", "null"], "it's"),
        ("a DECIMAL(10,2) DEFAULT 1.5", [DECIMAL, "null"], "\u0000\u0096"),
        ("a REAL DEFAULT 1", ["float", "null"], 1.0),
    ],
)
def test_a_constant_default_is_kept(text: str, kind: Any, default: Any) -> None:
    """SCH-2"""
    found = column(text)
    assert (found["type"], found["default"]) == (kind, default)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE hr.t (a INT COMMENT 'one') COMMENT='table'",
        "CREATE TABLE hr.t (a INT); COMMENT ON TABLE hr.t IS 'table';"
        " COMMENT ON COLUMN hr.t.a IS 'one'",
    ],
    ids=["MySQL", "PostgreSQL"],
)
def test_comments_become_docs(sql: str) -> None:
    """SCH-2"""
    assert avro_of_table(sql).canonical() == (
        '{"type":"record","name":"t","namespace":"hr","doc":"table","fields":'
        '[{"name":"a","type":["null","int"],"doc":"one","default":null}]}'
    )


def test_docs_become_comments() -> None:
    """SCH-2"""
    text = table_of_avro(avro_of_table("CREATE TABLE t (a INT COMMENT 'it''s one')"))
    assert text.endswith("COMMENT ON COLUMN t.a IS 'it''s one';\n")


def test_a_name_that_avro_does_not_have_is_kept_beside_it() -> None:
    schema = avro_of_table('CREATE TABLE t ("home address" TEXT)')
    assert '"home address" VARCHAR' in table_of_avro(schema)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("", "no CREATE TABLE"),
        ("CREATE INDEX i ON t (a)", "no CREATE TABLE"),
        ("CREATE TABLE t (a", "the column a has no type"),
        ("CREATE TABLE t (a INT", "ends within"),
        ("CREATE TABLE t (a INT, a INT)", "two columns a"),
        ("CREATE TABLE t (a GEOMETRY)", "the column a has the type GEOMETRY"),
        ("CREATE TABLE t (a NUMERIC)", "has no precision"),
        ("CREATE TABLE t (a INT DEFAULT 'x')", "the column a of INT cannot have the default 'x'"),
        ("CREATE TABLE t (a INT) \x00", "line 1"),
    ],
)
def test_invalid_sql_is_rejected_with_a_reason(sql: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        avro_of_table(sql)


@pytest.mark.parametrize(
    "text",
    ['"int"', '{"type":"record","name":"R","fields":[{"name":"a","type":["int","string"]}]}'],
)
def test_a_schema_that_is_not_a_table_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        table_of_avro(parse(text))
