"""Tables of pipeline.toml: invalid values are reported, valid ones kept."""

from typing import Any

import pytest

from headrace.pipelines.declaring.settings_tables import (
    PipelineTable,
    SourceTable,
    Wrong,
    ZoneTable,
    converted,
)


def test_valid_keys_are_kept_beside_invalid_ones() -> None:
    given = {"topic": "t", "priority": "high", "format": "jsn", "wher": "x"}
    found = converted(SourceTable, given, "sources.a")
    assert found.table == SourceTable(topic="t")
    assert [wrong.key for wrong in found.wrong] == ["wher", "format", "priority"]


def test_a_missing_required_key_gets_a_default() -> None:
    found = converted(PipelineTable, {}, "pipeline", name="unnamed")
    assert found.table.name == "unnamed"
    assert found.wrong == (Wrong('[pipeline] lacks name; write name = "..."'),)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"topc": "t"}, "[s] has no topc; did you mean topic or topics?"),
        ({"zzz": 1}, "[s] has no zzz; it has topic, topics, pattern, format, schema, message,"),
        ({"format": "cvs"}, "format is 'cvs', and can be bytes, json, csv, avro or protobuf; did "),
        ({"format": 3}, "format must be one of bytes, json, csv, avro, protobuf, and is a number"),
        ({"priority": True}, "priority must be a whole number, and is true or false"),
        ({"topic": ["a"]}, "topic must be a text, and is a list"),
        ({"topics": "a"}, 'topics must be a list of texts, as ["..."], and is a text'),
        ({"options": {"a": [1]}}, "options must be a table of texts and numbers, and is a table"),
    ],
)
def test_each_invalid_value_is_reported_with_valid_ones(given: dict[str, Any], text: str) -> None:
    (wrong,) = converted(SourceTable, given, "s").wrong
    assert wrong.text.startswith(text)


def test_only_unknown_items_of_a_list_are_reported() -> None:
    (wrong,) = converted(ZoneTable, {"requires": ["key", "checkes"]}, "zones.a").wrong
    assert wrong.text == (
        "requires is 'checkes', and can be checks, expectations, key or comment;"
        " did you mean checks?"
    )
