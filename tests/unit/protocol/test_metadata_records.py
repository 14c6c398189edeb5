"""Metadata records against what Apache Kafka itself wrote and printed.

`metadata_records.tsv` has every record in every version: Kafka's decoder read the bytes, wrote
the same bytes again and printed the JSON. `cluster_metadata.segment` is the log of a Kafka 4.3.1
node that was started, given topics, configs, quotas, users and ACLs, and stopped;
`bootstrap.checkpoint` is the snapshot that its formatting wrote.
"""

import json
from base64 import b64decode
from pathlib import Path
from struct import unpack_from
from typing import Any

import pytest

from headrace.protocol.batches import headers, records_of
from headrace.protocol.codec import DecodeError, decode, encode
from headrace.protocol.fields import Field, fields_of
from headrace.protocol.message import FrozenStructure, Message, Structure
from headrace.protocol.metadata_records import decode_metadata_record, encode_metadata_record
from headrace.protocol.schemas.records.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from headrace.protocol.schemas.records.metadata import FeatureLevelRecord
from headrace.protocol.uuids import from_text
from tests.builders.messages import METADATA_RECORDS, every_version

DATA = Path(__file__).parent.parent.parent / "data"
GOLDEN = [line.split("\t") for line in (DATA / "metadata_records.tsv").read_text().splitlines()]
CONTROL_VALUES: dict[int, type[Message]] = {
    2: LeaderChangeMessage,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}


def test_the_frame_is_kafkas() -> None:
    value = bytes.fromhex("01 0c 00 11 6d657461646174612e76657273696f6e 001e 00")
    record = FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert encode_metadata_record(record, 0) == value
    assert decode_metadata_record(value) == (record, 0)


def test_the_examples_have_every_record_in_every_version() -> None:
    examples = [decode_metadata_record(bytes.fromhex(value)) for _, _, value, _ in GOLDEN]
    found = {(type(record), version) for record, version in examples}
    assert found == set(every_version(METADATA_RECORDS))


@pytest.mark.parametrize(
    ("version", "value", "printed"),
    [pytest.param(*row[1:], id=f"{row[0].lower()}_v{row[1]}") for row in GOLDEN],
)
def test_records_equal_those_that_kafka_prints(version: str, value: str, printed: str) -> None:
    record, found = decode_metadata_record(bytes.fromhex(value))
    assert found == int(version)
    assert as_printed(record, found) == with_defaults(json.loads(printed), record, found)
    assert encode_metadata_record(record, found).hex() == value


def test_a_log_that_kafka_wrote_is_read_and_written_alike() -> None:
    seen = set()
    for value in metadata_values((DATA / "cluster_metadata.segment").read_bytes()):
        record, version = decode_metadata_record(value)
        seen.add(type(record))
        assert encode_metadata_record(record, version) == value
    assert len(seen) == 18


@pytest.mark.parametrize("file", ["cluster_metadata.segment", "bootstrap.checkpoint"])
def test_control_records_that_kafka_wrote_are_read_and_written_alike(file: str) -> None:
    values = list(control_values((DATA / file).read_bytes()))
    assert values
    for kind, value in values:
        (version,) = unpack_from(">h", value)
        assert encode(decode(CONTROL_VALUES[kind], version, value), version) == value


@pytest.mark.parametrize(
    "value",
    [b"", b"\x01", b"\x01\x0c", b"\x02\x0c\x00\x00", b"\x01\x06\x00\x00", b"\x01\x0c\x01\x00"],
    ids=["nothing", "cut in the key", "cut in the version", "frame", "type", "version"],
)
def test_an_unknown_frame_is_refused(value: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_metadata_record(value)


def metadata_values(log: bytes) -> list[bytes]:
    return [
        record.value or b""
        for position, header in headers(log)
        if not header.is_control
        for record in records_of(log, position)
    ]


def control_values(log: bytes) -> list[tuple[int, bytes]]:
    return [
        (unpack_from(">hh", record.key or b"")[1], record.value or b"")
        for position, header in headers(log)
        if header.is_control
        for record in records_of(log, position)
    ]


def as_printed(structure: Any, version: int) -> dict[str, Any]:
    """A decoded structure under the names of Kafka's JSON."""
    return {
        json_name(field): plain(getattr(structure, field.name), version)
        for field in fields_of(type(structure))
        if version in field.versions
    }


def plain(value: Any, version: int) -> Any:
    if isinstance(value, list):
        return [plain(one, version) for one in value]
    return as_printed(value, version) if isinstance(value, Structure | FrozenStructure) else value


def with_defaults(printed: dict[str, Any], structure: Any, version: int) -> dict[str, Any]:
    """Kafka's JSON as values of ours; a tagged field that has its default is not printed."""
    fields = [field for field in fields_of(type(structure)) if version in field.versions]
    values = {
        json_name(field): (
            parsed(printed[json_name(field)], field, version)
            if json_name(field) in printed
            else field.default
        )
        for field in fields
    }
    assert set(printed) <= set(values)
    return values


def parsed(value: Any, field: Field, version: int) -> Any:
    if isinstance(value, list):
        return [parsed(one, field, version) for one in value]
    if value is not None and field.kind == "uuid":
        return from_text(value)
    if value is not None and field.kind == "bytes":
        return b64decode(value)
    return with_defaults(value, field.structure(), version) if field.structure else value


def json_name(field: Field) -> str:
    first, *rest = field.name.split("_")
    return first + "".join(part.capitalize() for part in rest)
