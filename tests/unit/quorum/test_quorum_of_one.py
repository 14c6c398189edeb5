"""A quorum of one in a directory: the records of its leader, and the order of its disk writes."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.errors import KafkaStorageError
from headrace.metadata.image import Endpoint
from headrace.metadata.log.metadata_log import MetadataLog
from headrace.metadata.records import MetadataBatch, decode_batches
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    VotersRecord,
)
from headrace.quorum.metadata_quorum import MetadataQuorum
from headrace.raft.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from headrace.runtime import files
from tests.builders.metadata_nodes import formatted, kafkas_node, replica_in

METADATA = "__cluster_metadata-0"


def batches_in(log: MetadataLog, offset: int = 0) -> list[MetadataBatch]:
    return list(decode_batches(log.read(offset, 1 << 20)))


def kinds(batch: MetadataBatch) -> list[type[Message]]:
    return [type(record) for record in batch.records]


async def committed(quorum: MetadataQuorum) -> MetadataQuorum:
    """Start a replica, and wait until its log is committed."""
    done = asyncio.Event()
    quorum.on_committed = lambda _: done.set()
    quorum.start()
    await done.wait()
    return quorum


async def term(directory: Path, endpoint: Endpoint | None = None) -> MetadataBatch:
    """Lead once; return the first batch of the leader."""
    known = Endpoint("CONTROLLER", "localhost", 9093)
    quorum = replica_in(directory, endpoint=endpoint or known)
    begin = quorum.log.end_offset
    await committed(quorum)
    (batch,) = batches_in(quorum.log, begin)
    await quorum.close()
    return batch


async def test_the_first_leader_writes_the_voters(tmp_path: Path) -> None:
    quorum = await committed(replica_in(formatted(tmp_path)))
    (batch,) = batches_in(quorum.log)
    assert kinds(batch) == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
    assert (batch.base_offset, batch.epoch, quorum.epoch) == (0, 1, 1)
    assert quorum.is_leader
    assert read_quorum_state(quorum.log.directory) == QuorumState(leader_id=1, leader_epoch=1)
    await quorum.close()


async def test_a_restart_leads_the_next_epoch_without_repeating_the_voters(tmp_path: Path) -> None:
    await term(formatted(tmp_path))
    batch = await term(tmp_path)
    assert kinds(batch) == [LeaderChangeMessage]
    assert (batch.base_offset, batch.epoch) == (3, 2)


async def test_a_new_address_is_written_to_the_log(tmp_path: Path) -> None:
    await term(formatted(tmp_path))
    elsewhere = Endpoint("CONTROLLER", "elsewhere", 9093)
    quorum = await committed(replica_in(tmp_path, endpoint=elsewhere))
    (batch,) = batches_in(quorum.log, 3)
    assert kinds(batch) == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
    assert quorum.voters.voters[0].endpoints[0].host == "elsewhere"
    await quorum.close()


async def test_without_an_open_listener_the_known_address_stays(tmp_path: Path) -> None:
    await term(formatted(tmp_path))
    quorum = await committed(replica_in(tmp_path, endpoint=None))
    assert kinds(batches_in(quorum.log)[-1]) == [LeaderChangeMessage]
    assert quorum.voters.voters[0].endpoints[0].host == "localhost"
    await quorum.close()


async def test_an_epoch_is_never_led_twice(tmp_path: Path) -> None:
    """Neither after a vote that only the file has, nor if the file were lost."""
    await term(formatted(tmp_path))
    write_quorum_state(f"{tmp_path}/{METADATA}", QuorumState(leader_epoch=9, voted_id=4))
    assert (await term(tmp_path)).epoch == 10
    (tmp_path / METADATA / "quorum-state").unlink()
    assert (await term(tmp_path)).epoch == 11


async def test_the_epoch_is_on_disk_before_its_records_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    replace = files.replace

    def recorded(path: str, new_path: str) -> None:
        steps.append(Path(new_path).name)
        replace(path, new_path)

    async def background(function: Callable[[], None]) -> None:
        steps.append("sync")
        function()

    quorum = replica_in(formatted(tmp_path), background=background)
    monkeypatch.setattr(files, "replace", recorded)
    await committed(quorum)
    assert [step for step in steps if step != "leader-epoch-checkpoint"] == ["quorum-state", "sync"]
    await quorum.close()


async def test_an_epoch_that_cannot_be_stored_is_not_led(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quorum = replica_in(formatted(tmp_path))
    failures: list[KafkaStorageError] = []
    quorum.on_failure = failures.append
    replace = files.replace

    def refuse(path: str, new_path: str) -> None:
        if new_path.endswith("quorum-state"):
            raise OSError(5, "Input/output error")
        replace(path, new_path)

    monkeypatch.setattr(files, "replace", refuse)
    quorum.start()
    assert failures == [quorum.failure]
    assert quorum.high_watermark == 0
    with pytest.raises(KafkaStorageError):
        quorum.propose(bytearray())
    await quorum.close()


async def test_a_static_quorum_is_led_in_its_own_form(tmp_path: Path) -> None:
    formatted(tmp_path)
    shutil.rmtree(tmp_path / METADATA)
    quorum = await committed(replica_in(tmp_path))
    assert kinds(batches_in(quorum.log)[0]) == [LeaderChangeMessage]
    assert quorum.kraft_version == 0
    assert read_quorum_state(quorum.log.directory).static_voters == (1,)
    await quorum.close()


async def test_a_quorum_of_other_voters_is_not_led(tmp_path: Path) -> None:
    quorum = replica_in(formatted(tmp_path), directory_id=b"another directory"[:16])
    quorum.start()
    assert not quorum.is_leader
    assert quorum.log.end_offset == 0
    await quorum.close()


async def test_a_directory_that_kafka_left_in_a_crash_is_taken_over(tmp_path: Path) -> None:
    address = Endpoint("CONTROLLER", "127.0.0.1", 23462)
    batch = await term(kafkas_node(tmp_path), address)
    assert (batch.epoch, batch.base_offset, kinds(batch)) == (3, 48, [LeaderChangeMessage])
