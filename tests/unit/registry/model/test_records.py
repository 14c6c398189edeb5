"""The records of `_schemas`, byte by byte as Confluent's registry writes them."""

import pytest

from headrace.registry.compatibility.levels import Level
from headrace.registry.model.records import (
    AnyKey,
    AnyValue,
    Change,
    ConfigKey,
    ConfigValue,
    ContextKey,
    ContextValue,
    Mode,
    ModeKey,
    ModeValue,
    NoopKey,
    decoded,
)
from headrace.serdes.contracts import Metadata, Reference, Rule, RuleSet
from headrace.serdes.fingerprints import fingerprint
from headrace.serdes.schema_records import (
    ClearSubjectKey,
    ClearSubjectValue,
    DeleteSubjectKey,
    DeleteSubjectValue,
    SchemaKey,
    SchemaValue,
    UnknownRecord,
)

RECORDS: list[tuple[AnyKey, AnyValue | None, str, str | None]] = [
    (
        SchemaKey("orders", 2),
        SchemaValue("orders", 2, 7, schema='"int"'),
        '{"keytype":"SCHEMA","subject":"orders","version":2,"magic":1}',
        '{"subject":"orders","version":2,"id":7,"schemaType":"AVRO","schema":"\\"int\\"",'
        '"deleted":false}',
    ),
    (
        SchemaKey("orders", 3),
        SchemaValue(
            "orders",
            3,
            8,
            schema_type="PROTOBUF",
            references=[Reference("a.proto", "a", 1)],
            metadata=Metadata(properties={"owner": "ada"}),
            rules=RuleSet(domain_rules=[Rule(name="r", type="CEL").sorted()]),
            schema='syntax = "proto3";',
            deleted=True,
        ),
        '{"keytype":"SCHEMA","subject":"orders","version":3,"magic":1}',
        '{"subject":"orders","version":3,"id":8,"schemaType":"PROTOBUF","references":'
        '[{"name":"a.proto","subject":"a","version":1}],"metadata":{"properties":'
        '{"owner":"ada"}},"ruleSet":{"domainRules":[{"name":"r","kind":"TRANSFORM","mode":'
        '"WRITEREAD","type":"CEL","disabled":false}]},"schema":"syntax = \\"proto3\\";",'
        '"deleted":true}',
    ),
    (
        SchemaKey("orders", 1),
        None,
        '{"keytype":"SCHEMA","subject":"orders","version":1,"magic":1}',
        None,
    ),
    (
        ConfigKey("orders"),
        ConfigValue("orders", normalize=True, compatibility_level=Level.FULL_TRANSITIVE),
        '{"keytype":"CONFIG","subject":"orders","magic":0}',
        '{"subject":"orders","normalize":true,"compatibilityLevel":"FULL_TRANSITIVE"}',
    ),
    (
        ConfigKey(),
        ConfigValue(compatibility_level=Level.NONE),
        '{"keytype":"CONFIG","magic":0}',
        '{"compatibilityLevel":"NONE"}',
    ),
    (
        ModeKey("orders"),
        ModeValue("orders", Mode.IMPORT),
        '{"keytype":"MODE","subject":"orders","magic":0}',
        '{"subject":"orders","mode":"IMPORT"}',
    ),
    (
        DeleteSubjectKey("orders"),
        DeleteSubjectValue("orders", 3),
        '{"keytype":"DELETE_SUBJECT","subject":"orders","magic":0}',
        '{"subject":"orders","version":3}',
    ),
    (
        ClearSubjectKey("orders"),
        ClearSubjectValue("orders"),
        '{"keytype":"CLEAR_SUBJECT","subject":"orders","magic":0}',
        '{"subject":"orders"}',
    ),
    (
        ContextKey(context=".staging"),
        ContextValue(context=".staging"),
        '{"keytype":"CONTEXT","tenant":"default","context":".staging","magic":0}',
        '{"tenant":"default","context":".staging"}',
    ),
    (NoopKey(), None, '{"keytype":"NOOP","magic":0}', None),
]


@pytest.mark.parametrize(("key", "value", "key_text", "value_text"), RECORDS)
def test_records_are_written_as_confluent_writes_them(
    key: AnyKey, value: AnyValue | None, key_text: str, value_text: str | None
) -> None:
    written = Change(key, value).encoded()
    assert written == (key_text.encode(), value_text.encode() if value_text else None)


@pytest.mark.parametrize(("key", "value", "key_text", "value_text"), RECORDS)
def test_records_are_read_back(
    key: AnyKey, value: AnyValue | None, key_text: str, value_text: str | None
) -> None:
    read = decoded(key_text.encode(), value_text.encode() if value_text else None)
    assert read == Change(key, value)


def test_records_of_the_first_releases_are_read() -> None:
    """Their keys had another order, and records lacked a type and a mark of deletion."""
    read = decoded(
        b'{"magic":0,"keytype":"SCHEMA","subject":"orders","version":1}',
        b'{"subject":"orders","version":1,"id":1,"schema":"\\"int\\""}',
    )
    assert read.value == SchemaValue("orders", 1, 1, schema_type="AVRO", schema='"int"')


def test_fields_of_newer_releases_are_ignored() -> None:
    read = decoded(
        b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
        b'{"subject":"a","version":1,"id":1,"schema":"\\"int\\"","deleted":false,"ts":5,"x":{}}',
    )
    assert isinstance(read.value, SchemaValue)


@pytest.mark.parametrize("key", [b"", b"orders", b'{"keytype":"ASSOC"}', b"[]", b"\xff"])
def test_other_records_are_unknown(key: bytes) -> None:
    with pytest.raises(UnknownRecord):
        decoded(key, b"{}")


def test_a_stored_fingerprint_is_used() -> None:
    """Confluent's registry stores the fingerprint if it encrypts the metadata."""
    value = SchemaValue("a", 1, 1, md5="AAECAwQFBgcICQoLDA0ODw==", schema='"int"')
    assert value.fingerprint() == bytes(range(16))


def test_an_invalid_stored_fingerprint_is_computed_again() -> None:
    value = SchemaValue("a", 1, 1, md5="not base64!", schema='"int"')
    assert value.fingerprint() == fingerprint('"int"')
