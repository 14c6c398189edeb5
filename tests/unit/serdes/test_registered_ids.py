"""A registry's topic, replayed into the ids that are registered."""

import json
from typing import Any

import pytest

from headrace.serdes.fingerprints import fingerprint, guid
from headrace.serdes.registered_ids import RegisteredIds


def schema_key(subject: str, version: int) -> bytes:
    return json.dumps(
        {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    ).encode()


def schema_value(subject: str, version: int, id_: int, **more: Any) -> bytes:
    value = {"subject": subject, "version": version, "id": id_, "schema": f'"schema {id_}"'}
    return json.dumps({**value, "deleted": False, **more}).encode()


def ids_with(*versions: tuple[str, int, int]) -> RegisteredIds:
    ids = RegisteredIds()
    for subject, version, id_ in versions:
        ids.replay(schema_key(subject, version), schema_value(subject, version, id_))
    return ids


def test_an_id_has_all_subjects_that_it_is_registered_under() -> None:
    ids = ids_with(("orders-value", 1, 7), ("bills-value", 1, 7), ("bills-value", 2, 8))
    assert ids.subjects_of(7) == {"orders-value", "bills-value"}


def test_an_unregistered_id_has_no_subject() -> None:
    assert ids_with(("orders-value", 1, 7)).subjects_of(8) == frozenset()


def test_a_deleted_version_does_not_count() -> None:
    ids = ids_with(("orders-value", 1, 7))
    ids.replay(schema_key("orders-value", 1), schema_value("orders-value", 1, 7, deleted=True))
    assert ids.subjects_of(7) == frozenset()


def test_a_version_that_was_deleted_for_good_does_not_count() -> None:
    ids = ids_with(("orders-value", 1, 7))
    ids.replay(schema_key("orders-value", 1), None)
    assert ids.subjects_of(7) == frozenset()


def test_an_id_lives_as_long_as_one_version_of_the_subject_has_it() -> None:
    ids = ids_with(("orders-value", 1, 7), ("orders-value", 2, 8), ("orders-value", 3, 7))
    ids.replay(schema_key("orders-value", 1), None)
    assert ids.subjects_of(7) == {"orders-value"}


def test_deleting_a_subject_takes_its_versions_up_to_the_one_that_is_named() -> None:
    ids = ids_with(("orders-value", 1, 7), ("orders-value", 2, 8), ("orders-value", 3, 9))
    key = b'{"keytype":"DELETE_SUBJECT","subject":"orders-value","magic":0}'
    ids.replay(key, b'{"subject":"orders-value","version":2}')
    assert [bool(ids.subjects_of(id_)) for id_ in (7, 8, 9)] == [False, False, True]


def test_a_guid_is_found_like_an_id() -> None:
    ids = RegisteredIds()
    ids.replay(schema_key("orders-value", 1), schema_value("orders-value", 1, 7))
    assert ids.subjects_of(guid(fingerprint('"schema 7"'))) == {"orders-value"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"no JSON", b"{}"),
        (b'{"keytype":"NOOP","magic":0}', None),
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
        (b'{"keytype":"SCHEMA","subject":"orders-value","version":1}', b"\xff"),
    ],
)
def test_other_records_change_nothing(key: bytes | None, value: bytes | None) -> None:
    ids = ids_with(("orders-value", 1, 7))
    ids.replay(key, value)
    assert ids.subjects_of(7) == {"orders-value"}


def test_an_id_of_another_schema_is_passed_over_as_the_registry_does() -> None:
    """SCH-14(b)"""
    ids = ids_with(("orders-value", 1, 7))
    ids.replay(schema_key("bills-value", 1), schema_value("bills-value", 1, 7, schema='"other"'))
    assert (sorted(ids.subjects_of(7)), ids.skipped) == (["orders-value"], 1)


def test_an_id_of_another_context_may_have_another_schema() -> None:
    ids, subject = ids_with(("orders-value", 1, 7)), ":.staging:bills-value"
    ids.replay(schema_key(subject, 1), schema_value(subject, 1, 7, schema='"other"'))
    assert ids.subjects_of(7) == {"orders-value", subject}


def test_a_deleted_version_keeps_its_id_until_it_is_cleared() -> None:
    ids = ids_with(("orders-value", 1, 7))
    ids.replay(schema_key("orders-value", 1), schema_value("orders-value", 1, 7, deleted=True))
    other = schema_key("bills-value", 1), schema_value("bills-value", 1, 7, schema='"other"')
    ids.replay(*other)
    before = ids.subjects_of(7)
    ids.replay(
        b'{"keytype":"CLEAR_SUBJECT","subject":"orders-value","magic":0}',
        b'{"subject":"orders-value"}',
    )
    ids.replay(*other)
    assert (sorted(before), sorted(ids.subjects_of(7))) == ([], ["bills-value"])


def test_deleted_versions_leave_no_state() -> None:
    ids = ids_with(("orders-value", 1, 7), ("orders-value", 2, 8))
    for version in (1, 2):
        ids.replay(schema_key("orders-value", version), None)
    assert [kept for kept in vars(ids).values() if kept] == []
