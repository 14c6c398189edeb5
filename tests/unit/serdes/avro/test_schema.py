"""A schema's texts and fingerprints."""

import pytest

from headrace.serdes.avro.parsing import parse
from headrace.serdes.schemas import Dependency

ADDRESS = '{"type":"record","name":"Address","namespace":"a","fields":[{"name":"c","type":"int"}]}'
PERSON = '{"type":"record","name":"Person","fields":[{"name":"home","type":"a.Address"}]}'


def test_resolved_has_referenced_types_in_place() -> None:
    schema = parse(PERSON, [Dependency("a.Address", ADDRESS)])
    assert schema.formatted("resolved") == PERSON.replace('"a.Address"', ADDRESS)


def test_an_unknown_format_is_the_canonical_text() -> None:
    schema = parse(PERSON, [Dependency("a.Address", ADDRESS)])
    assert schema.formatted("pretty") == PERSON


def test_a_record_has_a_name() -> None:
    assert parse(ADDRESS).name == "a.Address"


@pytest.mark.parametrize(
    ("algorithm", "fingerprint"),
    [
        ("CRC-64-AVRO", "8f5c393f1ad57572"),
        ("MD5", "ef524ea1b91e73173d938ade36c1db32"),
        ("SHA-256", "3f2b87a9fe7cc9b13835598c3981cd45e3e355309e5090aa0933d7becb6fba45"),
    ],
)
def test_the_fingerprints_of_int_are_those_of_avros_specification(
    algorithm: str, fingerprint: str
) -> None:
    """The vectors are those of Avro's shared test schemas."""
    assert parse('"int"').fingerprint(algorithm) == fingerprint
