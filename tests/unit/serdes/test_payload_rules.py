"""Rules of a topic for the schema ids in its payloads. SCH-14(b)"""

import uuid

import pytest

from headrace.serdes.payload_rules import PayloadRule
from headrace.serdes.subject_strategies import strategy_named
from headrace.serdes.wire_format import SchemaId
from headrace.settings.subject_strategies import SubjectNameStrategy

GUID = uuid.UUID("7b0a2c37-8a4b-4f0e-9d7b-3c2f0c0f0a11")
OTHER_GUID = uuid.UUID("00000000-8a4b-4f0e-9d7b-3c2f0c0f0a11")


class Registry:
    """Two schemas: 7 of orders, with a GUID, and 8 of bills."""

    SUBJECTS: dict[SchemaId, frozenset[str]] = {  # noqa: RUF012
        7: frozenset({"orders-value"}),
        str(GUID): frozenset({"orders-value"}),
        8: frozenset({"bills-com.shop.Bill"}),
    }

    def subjects_of(self, id_: SchemaId) -> frozenset[str]:
        return self.SUBJECTS.get(id_, frozenset())


def rule(
    topic: str = "orders", strategy: SubjectNameStrategy = SubjectNameStrategy.TOPIC
) -> PayloadRule:
    return PayloadRule("value", topic, strategy, Registry())


def payload(id_: int) -> bytes:
    return b"\0" + id_.to_bytes(4, "big") + b"rest"


def test_a_registered_schema_of_the_topic_passes() -> None:
    assert rule().complaint(payload(7), ()) is None


def test_null_passes() -> None:
    assert rule().complaint(None, ()) is None


@pytest.mark.parametrize("value", [b"", b"\0\0\0\0", b"plain text", b"\x01\0\0\0\x07"])
def test_a_payload_without_an_id_is_refused(value: bytes) -> None:
    assert "does not begin with a schema id" in str(rule().complaint(value, ()))


def test_an_unknown_id_is_refused_by_its_number() -> None:
    assert "id 99, which is not registered" in str(rule().complaint(payload(99), ()))


def test_a_foreign_id_is_refused_with_the_subject_that_has_it() -> None:
    complaint = str(rule().complaint(payload(8), ()))
    assert "registered under bills-com.shop.Bill and not under orders-value" in complaint


@pytest.mark.parametrize(
    ("topic", "strategy", "passes"),
    [
        ("bills", SubjectNameStrategy.TOPIC, False),
        ("bills", SubjectNameStrategy.TOPIC_RECORD, True),
        ("orders", SubjectNameStrategy.TOPIC_RECORD, False),
        ("orders", SubjectNameStrategy.RECORD, True),
    ],
)
def test_the_strategy_selects_the_subjects(
    topic: str, strategy: SubjectNameStrategy, passes: bool
) -> None:
    assert (rule(topic, strategy).complaint(payload(8), ()) is None) == passes


@pytest.mark.parametrize(("guid", "passes"), [(GUID, True), (OTHER_GUID, False)])
def test_a_header_may_name_the_schema_by_its_guid(guid: uuid.UUID, passes: bool) -> None:
    headers = [("__value_schema_id", b"\x01" + guid.bytes)]
    assert (rule().complaint(b"payload", headers) is None) == passes


def test_a_header_may_name_the_schema_by_its_id() -> None:
    headers = [("__value_schema_id", payload(7)[:5])]
    assert rule().complaint(b"payload", headers) is None


def test_the_header_of_the_key_does_not_apply_to_the_value() -> None:
    headers = [("__key_schema_id", b"\x01" + GUID.bytes)]
    assert rule().complaint(b"payload", headers) is not None


@pytest.mark.parametrize(
    "name",
    ["RecordNameStrategy", "io.confluent.kafka.serializers.subject.RecordNameStrategy"],
)
def test_a_strategy_goes_by_confluents_name_too(name: str) -> None:
    assert strategy_named(name) is SubjectNameStrategy.RECORD


@pytest.mark.parametrize(("first", "last", "passes"), [(8, 7, True), (7, 8, False)])
def test_the_last_of_two_headers_counts(first: int, last: int, passes: bool) -> None:
    headers = [("__value_schema_id", b"\0" + id_.to_bytes(4, "big")) for id_ in (first, last)]
    assert (rule().complaint(b"value", headers) is None) is passes
