"""The small text files of a log directory."""

from pathlib import Path

import pytest

from headrace.protocol.uuids import to_text
from headrace.storage.checkpoints import (
    CorruptCheckpoint,
    DirectoryIdentity,
    decode_clean_shutdown,
    decode_identity,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_identity,
    encode_partition_metadata,
    read_offsets,
    write_offsets,
)
from headrace.storage.topic_partition import TopicPartition
from tests.builders.logs import TOPIC_ID


def test_offsets_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    path = str(tmp_path / "replication-offset-checkpoint")
    offsets = {TopicPartition("a-b.c", 0): 5, TopicPartition("x", 12): 1 << 40}
    write_offsets(path, offsets)
    assert Path(path).read_text() == f"0\n2\na-b.c 0 5\nx 12 {1 << 40}\n"
    assert read_offsets(path) == offsets


def test_a_checkpoint_that_is_not_there_or_empty_has_no_offsets(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    assert read_offsets(str(path)) == {}
    path.touch()
    assert read_offsets(str(path)) == {}


@pytest.mark.parametrize(
    "content",
    [
        "1\n0\n",
        "0\n",
        "0\nx\n",
        "0\n2\na 0 5\n",
        "0\n1\na 0\n",
        "0\n1\na x 5\n",
        "0\n1\na 0 5",
        "\xff",
    ],
)
def test_a_damaged_checkpoint_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(content)
    with pytest.raises(CorruptCheckpoint):
        read_offsets(str(path))


def test_partition_metadata_is_kafkas() -> None:
    content = encode_partition_metadata(TOPIC_ID)
    assert content == b"version: 0\ntopic_id: " + to_text(TOPIC_ID).encode()
    assert decode_partition_metadata(content) == TOPIC_ID


@pytest.mark.parametrize(
    "content", [b"", b"version: 0", b"version: 1\ntopic_id: x", b"topic_id: x"]
)
def test_damaged_partition_metadata_is_an_error(content: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        decode_partition_metadata(content)


def test_the_identity_of_a_directory_is_kafkas() -> None:
    identity = DirectoryIdentity("AAAAAAAAAAAAAAAAAAAAAQ", 3, TOPIC_ID)
    content = encode_identity(identity)
    assert decode_identity(content) == identity
    java = (
        "#\n#Sun Nov 16 01:00:00 UTC 2025\nnode.id=3\nversion=1\n"
        f"directory.id={to_text(TOPIC_ID)}\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
    )
    assert decode_identity(java.encode()) == identity


@pytest.mark.parametrize(
    "content", [b"", b"version=0", b"version=1\ncluster.id=x\nnode.id=x\ndirectory.id=y"]
)
def test_a_damaged_identity_is_an_error(content: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        decode_identity(content)


def test_the_marker_of_a_clean_stop_has_the_broker_epoch() -> None:
    assert encode_clean_shutdown(12) == b'{"version":0,"brokerEpoch":12}'
    assert decode_clean_shutdown(encode_clean_shutdown(12)) == 12
    assert decode_clean_shutdown(b"") == -1
    assert decode_clean_shutdown(b"{}") == -1
