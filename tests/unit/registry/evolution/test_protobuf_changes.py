"""Changes of Protobuf schemas, with fields by their names."""

from headrace.registry.evolution.changes import Change, ChangeKind
from headrace.registry.evolution.protobuf_changes import protobuf_changes
from headrace.serdes.protobuf.parsing import parse

HEAD = 'syntax = "proto3"; message Order { '


def changes(old: str, new: str) -> list[Change]:
    return protobuf_changes(parse(f"{HEAD}{old} }}"), parse(f"{HEAD}{new} }}"))


def test_fields_are_called_by_their_names() -> None:
    assert changes("int64 id = 1;", "int64 id = 1; string note = 2;") == [
        Change(ChangeKind.ADDED, "Order.note (2)", "field added")
    ]


def test_a_removed_field_has_the_name_that_it_had() -> None:
    assert changes("int64 id = 1; string note = 2;", "int64 id = 1;") == [
        Change(ChangeKind.REMOVED, "Order.note (2)", "field removed")
    ]


def test_a_field_of_a_oneof_is_called_by_its_name() -> None:
    old, new = "oneof paid { int64 cash = 1; }", "oneof paid { int64 cash = 1; string card = 2; }"
    assert changes(old, new) == [Change(ChangeKind.ADDED, "Order.card (2)", "oneof field added")]


def test_constants_of_an_enum_are_called_by_their_names() -> None:
    old, new = "enum State { NEW = 0; }", "enum State { NEW = 0; DONE = 1; }"
    assert changes(old, new) == [
        Change(ChangeKind.ADDED, "Order.State.DONE (1)", "enum const added")
    ]


def test_whole_messages_have_a_path_of_names() -> None:
    assert changes("", "message Line {}") == [
        Change(ChangeKind.ADDED, "Order.Line", "message added")
    ]
