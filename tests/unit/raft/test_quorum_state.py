"""The quorum-state file, in both of Kafka's forms."""

from pathlib import Path

import pytest

from headrace.raft.quorum_state import (
    CorruptQuorumState,
    QuorumState,
    decode_quorum_state,
    encode_quorum_state,
    read_quorum_state,
    write_quorum_state,
)
from tests.builders.metadata_nodes import KAFKA_NODE


def test_our_file_is_kafkas_byte_for_byte() -> None:
    content = (KAFKA_NODE / "__cluster_metadata-0" / "quorum-state").read_bytes()
    state = QuorumState(leader_id=1, leader_epoch=2)
    assert decode_quorum_state(content) == state
    assert encode_quorum_state(state) == content


def test_a_static_quorum_has_the_older_form() -> None:
    state = QuorumState(leader_id=1, leader_epoch=2, static_voters=(1,))
    content = encode_quorum_state(state)
    assert content == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert decode_quorum_state(content) == state


def test_a_vote_is_remembered(tmp_path: Path) -> None:
    state = QuorumState(leader_epoch=7, voted_id=3, voted_directory_id=b"v" * 16)
    write_quorum_state(str(tmp_path), state)
    assert read_quorum_state(str(tmp_path)) == state


def test_without_a_file_the_epoch_is_zero(tmp_path: Path) -> None:
    assert read_quorum_state(str(tmp_path)) == QuorumState()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b'{"data_version":2}',
        b'{"data_version":1,"leaderEpoch":"x"}',
        b'{"data_version":1,"votedDirectoryId":"short"}',
        b'{"leaderId":1,"leaderEpoch":2,"vo',
    ],
)
def test_an_epoch_is_never_guessed(content: bytes) -> None:
    with pytest.raises(CorruptQuorumState):
        decode_quorum_state(content)
