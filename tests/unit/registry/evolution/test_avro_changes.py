"""Changes of Avro schemas, field by field."""

import pytest

from headrace.registry.evolution.avro_changes import avro_changes, type_text
from headrace.registry.evolution.changes import Change, ChangeKind
from headrace.serdes.avro.parsing import parse
from tests.builders.avro_versions import EMAIL, ID, NOTE, V1, WITH_EMAIL, WITH_NOTE, order

ADDED, REMOVED, CHANGED = ChangeKind.ADDED, ChangeKind.REMOVED, ChangeKind.CHANGED


def test_a_new_field_is_listed_with_its_type_and_default() -> None:
    """SCH-6"""
    assert avro_changes(V1, WITH_NOTE) == [
        Change(ADDED, "Order.note", "null | string, default null")
    ]


def test_a_removed_field_is_listed_with_its_type_and_default() -> None:
    assert avro_changes(WITH_EMAIL, V1) == [
        Change(REMOVED, "Order.email", "string, had no default")
    ]


def test_a_field_with_an_alias_is_the_old_one_by_another_name() -> None:
    renamed = order(ID, {**EMAIL, "name": "mail", "aliases": ["email"]})
    assert avro_changes(WITH_EMAIL, renamed) == [
        Change(CHANGED, "Order.mail", "was called email, which is an alias now")
    ]


@pytest.mark.parametrize(
    ("changed", "detail"),
    [
        ({"type": "double"}, "long -> double"),
        ({"default": 7}, "no default -> default 7"),
        ({"doc": "Its number."}, "doc"),
        ({"order": "ignore"}, "order ascending -> ignore"),
        ({"type": {"type": "long", "logicalType": "timestamp-millis"}},
         "long -> long (timestamp-millis)"),
        ({"type": ["null", "long"]}, "long -> null | long"),
        ({"type": {"type": "array", "items": "long"}}, "long -> array of long"),
    ],
)  # fmt: skip
def test_changes_of_a_field_are_listed(changed: dict[str, object], detail: str) -> None:
    assert avro_changes(V1, order({**ID, **changed})) == [Change(CHANGED, "Order.id", detail)]


def test_branches_of_unions_are_listed_one_by_one() -> None:
    wider = order(ID, {**NOTE, "type": ["null", "bytes"]})
    assert avro_changes(WITH_NOTE, wider) == [
        Change(ADDED, "Order.note", "bytes in the union"),
        Change(REMOVED, "Order.note", "string from the union"),
    ]


def test_symbols_of_enums_are_listed_one_by_one() -> None:
    old = parse('{"type":"enum","name":"Suit","symbols":["A","B"]}')
    new = parse('{"type":"enum","name":"Suit","symbols":["A","C"],"default":"A"}')
    assert [change.detail for change in avro_changes(old, new)] == [
        "symbol C",
        "symbol B",
        "default None -> A",
    ]


def test_changes_within_lists_and_maps_have_their_path() -> None:
    def nested(kind: str) -> str:
        return f'{{"type":"map","values":{{"type":"array","items":"{kind}"}}}}'

    assert avro_changes(parse(nested("int")), parse(nested("long"))) == [
        Change(CHANGED, "{}[]", "int -> long")
    ]


def test_sizes_and_names_are_listed() -> None:
    old = parse('{"type":"fixed","name":"Hash","size":16}')
    new = parse('{"type":"fixed","name":"Digest","size":32}')
    assert [change.detail for change in avro_changes(old, new)] == [
        "name Hash -> Digest",
        "16 -> 32 bytes",
    ]


def test_comparing_a_recursive_schema_ends() -> None:
    text = (
        '{"type":"record","name":"N","fields":[{"name":"next","type":["null","N"]},'
        '{"name":"v","type":"%s"}]}'
    )
    assert avro_changes(parse(text % "int"), parse(text % "long")) == [
        Change(CHANGED, "N.v", "int -> long")
    ]


def test_types_are_described_in_a_few_words() -> None:
    assert type_text(parse('{"type":"map","values":["null","string"]}').root) == (
        "map of null | string"
    )
