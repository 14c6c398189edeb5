"""One definition of each option, read by SQL and Python."""

from dataclasses import fields

import pytest

from headrace.pipelines.declaring.options import (
    ChangesOptions,
    FedTableOptions,
    FlowOptions,
    MergedViewOptions,
    RuledTableOptions,
    SinkOptions,
    ViewOptions,
    given_in_python,
    given_in_sql,
    options_of,
)
from headrace.pipelines.declaring.sql_parts import Parts
from headrace.pipelines.model import (
    Changes,
    Flow,
    MaterializedView,
    MergedView,
    Sink,
    StreamingTable,
)
from headrace.serdes.sql_tokens import tokens

KINDS = [
    (FedTableOptions, {StreamingTable, Flow}),
    (RuledTableOptions, {StreamingTable}),
    (ViewOptions, {MaterializedView}),
    (MergedViewOptions, {MergedView}),
    (FlowOptions, {Flow}),
    (ChangesOptions, {Changes}),
    (SinkOptions, {Sink}),
]


@pytest.mark.parametrize(("kind", "models"), KINDS)
def test_each_option_fills_a_field_of_its_model(kind: type, models: set[type]) -> None:
    known = {one.name for model in models for one in fields(model)} | {"comment"}
    filled = {option.field or keyword for keyword, option in options_of(kind).items()}
    assert filled <= known


@pytest.mark.parametrize(("kind", "models"), KINDS)
def test_each_option_is_described_in_a_sentence(kind: type, models: set[type]) -> None:
    assert all(option.doc.endswith(".") for option in options_of(kind).values())


def test_sql_and_python_give_the_same_fields() -> None:
    sql = "KEYS (id) PARTITIONED BY (day) TRIGGER EVERY 5 SECONDS TBLPROPERTIES ('a' = 'b')"
    read = given_in_sql(FedTableOptions, Parts(sql, tokens(sql), "a.sql"))
    called = given_in_python(
        FedTableOptions,
        {
            "keys": "id",
            "partition_cols": ["day"],
            "trigger": "5 seconds",
            "table_properties": {"a": "b"},
            "sequence_by": None,
        },
    )
    assert read.fields == called.fields


def test_rules_of_several_options_come_together() -> None:
    given = given_in_python(
        RuledTableOptions, {"expect_all": {"a": "x > 1"}, "expect_all_or_drop": {"b": "x > 2"}}
    )
    assert [one.name for one in given.fields["expectations"]] == ["a", "b"]


def test_a_problem_names_the_option_as_it_was_written() -> None:
    assert given_in_python(SinkOptions, {"format": "xml"}).problems == [
        "format: 'xml' is unknown; it can be json or kafka"
    ]
    sql = "FORMAT xml"
    assert given_in_sql(SinkOptions, Parts(sql, tokens(sql), "a.sql")).problems == [
        "FORMAT: 'xml' is unknown; it can be json or kafka"
    ]
