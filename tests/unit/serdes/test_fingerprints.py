"""Fingerprints are Confluent's, so that guids are the same in its registry and ours."""

import hashlib

from headrace.serdes.contracts import Metadata, Reference, Rule, RuleMode, RuleSet
from headrace.serdes.fingerprints import fingerprint, fingerprint_of_guid, guid


def md5(*parts: bytes) -> bytes:
    return hashlib.md5(b"".join(parts)).digest()


def test_the_fingerprint_of_a_bare_schema_is_that_of_the_text() -> None:
    assert fingerprint('"string"') == md5(b'"string"')


def test_references_count_with_their_versions() -> None:
    reference = Reference("Address", "address-value", 3)
    expected = md5(b"text", b"Address", b"address-value", b"\x00\x00\x00\x03")
    assert fingerprint("text", [reference]) == expected


def test_a_fingerprint_includes_sorted_metadata() -> None:
    metadata = Metadata({"a.b": ["PII"]}, {"z": "1", "owner": "ada"}, ["owner"])
    expected = md5(b"text", b"\x01", b"a.bPII", b"ownerada", b"z1", b"owner")
    assert fingerprint("text", metadata=metadata) == expected


def test_rules_count_with_their_default_modes() -> None:
    rules = RuleSet(domain_rules=[Rule(name="n", type="CEL", expr="x > 1", disabled=True)])
    expected = md5(b"text", b"\x01", b"n", b"TRANSFORM", b"WRITEREAD", b"CEL", b"x > 1", b"\x01")
    assert fingerprint("text", rules=rules) == expected


def test_parameters_and_actions_of_rules_count() -> None:
    rule = Rule(name="n", mode=RuleMode.READ, tags=["b", "a"], params={"k": "v"}, on_failure="DLQ")
    expected = md5(b"t", b"\x01", b"n", b"TRANSFORM", b"READ", b"ab", b"kv", b"DLQ")
    assert fingerprint("t", rules=RuleSet(encoding_rules=[rule])) == expected


def test_empty_metadata_differs_from_none() -> None:
    assert fingerprint("text", metadata=Metadata()) != fingerprint("text")


def test_a_guid_is_the_fingerprint_as_a_uuid() -> None:
    assert guid(bytes(range(16))) == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert fingerprint_of_guid(guid(bytes(range(16)))) == bytes(range(16))


def test_an_invalid_guid_has_no_fingerprint() -> None:
    assert fingerprint_of_guid("orders") is None
