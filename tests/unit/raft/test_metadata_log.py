"""The metadata log of a quorum of one: its epochs, its voters, its snapshots, its repairs."""

import shutil
from pathlib import Path

import pytest

from headrace.errors import PolicyViolation
from headrace.metadata.image import Endpoint
from headrace.metadata.image_records import feature_records
from headrace.metadata.loader import MetadataLoader
from headrace.metadata.records import (
    CorruptMetadata,
    MetadataBatch,
    VersionedRecord,
    decode_batches,
)
from headrace.metadata.snapshots import SnapshotId
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    VotersRecord,
)
from headrace.protocol.schemas.records.metadata import ConfigRecord, TopicRecord
from headrace.raft.metadata_log import MetadataLog, MetadataLogSettings, NotAQuorumOfOne
from headrace.raft.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from headrace.runtime import files
from tests.metadata_nodes import (
    ENDPOINT,
    NOW_MS,
    formatted,
    image_in,
    kafkas_node,
    loaded,
    opened,
)

METADATA = "__cluster_metadata-0"


def kinds(batch: MetadataBatch) -> list[type[Message]]:
    return [type(record) for record in batch.records]


def config(name: str, value: str = "x") -> VersionedRecord:
    return VersionedRecord(ConfigRecord(4, "", name, value))


def write(log: MetadataLog, loader: MetadataLoader, *records: VersionedRecord) -> None:
    """Append, replay and sync."""
    prepared = log.prepare(records, NOW_MS)
    for one in prepared:
        loader.replay(one.batch)
    loader.publish()
    log.append(prepared)
    plan = log.plan_flush()
    plan.run()
    log.flushed(plan, NOW_MS)


def led(
    directory: Path, settings: MetadataLogSettings | None = None
) -> tuple[MetadataLog, MetadataLoader]:
    log = opened(directory, settings)
    loader = loaded(log)
    loader.replay(log.take_over([ENDPOINT], NOW_MS))
    return log, loader


def snapshot(log: MetadataLog, loader: MetadataLoader) -> SnapshotId:
    plan = log.plan_snapshot(loader.image, NOW_MS)
    plan.run()
    log.snapshot_taken(plan)
    return plan.id


# Leading.


def test_the_first_leader_says_who_votes(tmp_path: Path) -> None:
    log = opened(formatted(tmp_path))
    loaded(log)
    batch = log.take_over([ENDPOINT], NOW_MS)
    assert kinds(batch) == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
    assert (batch.base_offset, batch.epoch, log.leader_epoch) == (0, 1, 1)
    assert read_quorum_state(log.directory) == QuorumState(leader_id=1, leader_epoch=1)


def test_a_restart_leads_the_next_epoch_without_repeating_the_voters(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path))
    write(log, loader, config("a"))
    log.close()
    log = opened(tmp_path)
    loaded(log)
    batch = log.take_over([ENDPOINT], NOW_MS)
    assert kinds(batch) == [LeaderChangeMessage]
    assert (batch.base_offset, batch.epoch) == (4, 2)


def test_a_new_address_is_told(tmp_path: Path) -> None:
    log, _ = led(formatted(tmp_path))
    log.close()
    log = opened(tmp_path)
    loaded(log)
    batch = log.take_over([Endpoint("CONTROLLER", "elsewhere", 9093)], NOW_MS)
    assert kinds(batch) == [LeaderChangeMessage, KRaftVersionRecord, VotersRecord]
    assert log.voters is not None
    assert log.voters.voters[0].endpoints[0].host == "elsewhere"


def test_without_an_open_listener_the_known_address_stays(tmp_path: Path) -> None:
    log, _ = led(formatted(tmp_path))
    log.close()
    log = opened(tmp_path)
    loaded(log)
    assert kinds(log.take_over([], NOW_MS)) == [LeaderChangeMessage]


def test_an_epoch_is_never_led_twice(tmp_path: Path) -> None:
    """Neither after a vote that only the file remembers, nor if the file were lost."""
    log, _ = led(formatted(tmp_path))
    log.close()
    write_quorum_state(log.directory, QuorumState(leader_epoch=9, voted_id=4))
    log, _ = led(tmp_path)
    assert log.leader_epoch == 10
    log.close()
    (tmp_path / METADATA / "quorum-state").unlink()
    log, _ = led(tmp_path)
    assert log.leader_epoch == 11


def test_the_epoch_is_on_disk_before_it_is_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(formatted(tmp_path))
    loaded(log)
    monkeypatch.setattr(files, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        log.take_over([ENDPOINT], NOW_MS)
    assert log.end_offset == 0


def test_a_static_quorum_is_led_in_its_own_form(tmp_path: Path) -> None:
    formatted(tmp_path)
    shutil.rmtree(tmp_path / METADATA)
    (tmp_path / METADATA).mkdir()
    log = opened(tmp_path)
    loaded(log)
    assert kinds(log.take_over([ENDPOINT], NOW_MS)) == [LeaderChangeMessage]
    assert (log.kraft_version, log.voters) == (0, None)
    assert read_quorum_state(log.directory).static_voters == (1,)


def test_a_quorum_with_others_is_not_ours_to_lead(tmp_path: Path) -> None:
    formatted(tmp_path)
    log = MetadataLog.open(str(tmp_path), 1, b"another directory"[:16])
    with pytest.raises(NotAQuorumOfOne):
        loaded(log)
    log = MetadataLog.open(str(tmp_path), 2, log.directory_id)
    with pytest.raises(NotAQuorumOfOne, match="node 2"):
        loaded(log)


# Writing.


def test_what_is_synced_is_committed(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path))
    prepared = log.prepare([config("a")], NOW_MS)
    log.append(prepared)
    assert (log.end_offset, log.high_watermark) == (4, 0)
    plan = log.plan_flush()
    log.append(log.prepare([config("b")], NOW_MS))
    plan.run()
    log.flushed(plan, NOW_MS)
    assert (log.end_offset, log.high_watermark) == (5, 4)
    assert loader.image.offset == -1


def test_a_restart_finds_what_was_written(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path))
    write(log, loader, *map(VersionedRecord, feature_records({"metadata.version": 25})))
    write(log, loader, VersionedRecord(TopicRecord("orders", b"o" * 16)), config("a"))
    log.close()
    assert image_in(tmp_path) == loader.image


def test_many_records_become_several_batches(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path))
    write(log, loader, *(config(f"name-{number}") for number in range(10_001)))
    log.close()
    data = (tmp_path / METADATA / f"{0:020d}.log").read_bytes()
    counts = [len(batch.records) for batch in decode_batches(data)]
    assert counts == [3, 10_000, 1]
    assert image_in(tmp_path) == loader.image


def test_a_batch_that_no_follower_would_take_is_refused(tmp_path: Path) -> None:
    log, _ = led(formatted(tmp_path))
    with pytest.raises(PolicyViolation, match="split"):
        log.prepare([config(str(number), "x" * 30_000) for number in range(300)], NOW_MS)


# Crashes.


def test_a_torn_tail_is_cut_off(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path))
    write(log, loader, config("a"))
    before = loader.image
    write(log, loader, config("b"))
    log.close()
    path = tmp_path / METADATA / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-5])
    assert image_in(tmp_path) == before


def test_a_snapshot_that_is_ahead_of_the_log_wins(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path))
    write(log, loader, config("a"))
    snapshot(log, loader)
    log.close()
    for path in (tmp_path / METADATA).glob("*.log"):
        path.write_bytes(b"")
    log = opened(tmp_path)
    again = loaded(log)
    assert again.image.configs == loader.image.configs
    assert log.end_offset == loader.image.offset + 1
    again.replay(log.take_over([ENDPOINT], NOW_MS))
    assert log.leader_epoch == 2


def test_a_damaged_snapshot_is_never_guessed_around(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path))
    write(log, loader, config("a"))
    name = snapshot(log, loader).file_name
    log.close()
    path = tmp_path / METADATA / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptMetadata, match=name):
        image_in(tmp_path)


def test_leftovers_of_a_crash_are_removed(tmp_path: Path) -> None:
    formatted(tmp_path)
    part = tmp_path / METADATA / f"{5:020d}-{1:010d}-abc.checkpoint.part"
    part.touch()
    opened(tmp_path).close()
    assert not part.exists()


# Snapshots.


def test_a_start_reads_the_snapshot_and_what_follows(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path))
    write(log, loader, config("a"))
    taken = snapshot(log, loader)
    write(log, loader, config("b"))
    log.close()
    log = opened(tmp_path)
    assert log.snapshots == [(0, 0), taken]
    assert loaded(log).image == loader.image
    assert log.kraft_version == 1


def test_a_snapshot_is_due_when_much_was_written(tmp_path: Path) -> None:
    settings = MetadataLogSettings(record_bytes_between_snapshots=1000)
    log, loader = led(formatted(tmp_path), settings)
    assert not log.has_grown()
    write(log, loader, config("a", "x" * 1000))
    assert log.has_grown()
    snapshot(log, loader)
    assert not log.has_grown()
    log.close()
    log, loader = led(tmp_path, settings)
    assert not log.has_grown()
    write(log, loader, config("a", "y" * 1000))
    log.close()
    assert led(tmp_path, settings)[0].has_grown()


def test_a_snapshot_is_due_with_time_if_there_is_news(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path), MetadataLogSettings(snapshot_interval_ms=1000))
    later_ms = files.modified_ms(f"{log.directory}/{SnapshotId(0, 0).file_name}") + 1000
    assert not log.has_aged(later_ms)
    write(log, loader, config("a"))
    assert log.has_aged(later_ms)
    assert not log.has_aged(later_ms - 500)
    snapshot(log, loader)
    assert not log.has_aged(NOW_MS + 5000)


def test_old_snapshots_and_the_log_before_them_go(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path), MetadataLogSettings(retention_bytes=0))
    for name in "abc":
        write(log, loader, config(name))
        snapshot(log, loader)
    newest = log.snapshots[-1]
    log.clean(NOW_MS)
    assert log.snapshots == [newest]
    assert log.start_offset == newest.end_offset
    log.close()
    assert image_in(tmp_path) == loader.image


def test_the_last_snapshot_is_never_deleted(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path), MetadataLogSettings(retention_bytes=0, retention_ms=0))
    write(log, loader, config("a"))
    log.clean(NOW_MS * 2)
    assert log.snapshots == [(0, 0)]


def test_within_the_limits_all_is_kept(tmp_path: Path) -> None:
    log, loader = led(formatted(tmp_path))
    write(log, loader, config("a"))
    snapshot(log, loader)
    log.clean(files.modified_ms(f"{log.directory}/{log.snapshots[0].file_name}"))
    assert len(log.snapshots) == 2


# Kafka's directories.


def test_a_directory_that_kafka_left_in_a_crash_is_taken_over(tmp_path: Path) -> None:
    log = opened(kafkas_node(tmp_path))
    loader = loaded(log)
    assert list(loader.image.topics) == ["orders"]
    batch = log.take_over([Endpoint("CONTROLLER", "127.0.0.1", 23462)], NOW_MS)
    assert (batch.epoch, batch.base_offset, kinds(batch)) == (3, 48, [LeaderChangeMessage])


def test_our_snapshot_of_kafkas_metadata_keeps_all_of_it(tmp_path: Path) -> None:
    log, loader = led(kafkas_node(tmp_path))
    write(log, loader, config("ours"))
    snapshot(log, loader)
    log.close()
    assert image_in(tmp_path) == loader.image
    assert loader.image.acls
    assert loader.image.scram_credentials
    assert loader.image.client_quotas
