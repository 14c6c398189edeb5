"""Snapshots: ours give the same image again, and Kafka's are read."""

from pathlib import Path

import pytest

from headrace.metadata.image import EMPTY, MetadataImage
from headrace.metadata.image_records import image_records
from headrace.metadata.loader import MetadataLoader
from headrace.metadata.records import CorruptMetadata, decode_batches
from headrace.metadata.snapshots import SnapshotId, decode_snapshot, encode_snapshot
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.control import (
    KRaftVersionRecord,
    VotersRecord,
    VotersRecordVoter,
)
from headrace.protocol.schemas.records.metadata import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UserScramCredentialRecord,
)
from tests.builders.metadata_images import KAFKA_LEVELS, image_with, replayed, topic_id

KAFKA = Path(__file__).parents[2] / "data" / "kafka_node" / "__cluster_metadata-0"


def snapshot_of(image: MetadataImage) -> bytes:
    batches = encode_snapshot(
        image_records(image),
        epoch=image.epoch,
        last_contained_log_timestamp_ms=image.timestamp_ms,
        now_ms=7,
    )
    return b"".join(batches)


def loaded(data: bytes, end_offset: int, epoch: int) -> MetadataImage:
    snapshot = decode_snapshot(data)
    loader = MetadataLoader()
    loader.replay_snapshot(
        snapshot.records,
        end_offset=end_offset,
        epoch=epoch,
        timestamp_ms=snapshot.timestamp_ms,
    )
    return loader.publish().image


def kafkas_log(first: int = 0) -> MetadataLoader:
    """Kafka's own metadata log from an offset on, which is where its snapshot ends."""
    loader = MetadataLoader()
    if first:
        data = (KAFKA / SnapshotId(first, 1).file_name).read_bytes()
        snapshot = decode_snapshot(data)
        loader.replay_snapshot(
            snapshot.records, end_offset=first, epoch=1, timestamp_ms=snapshot.timestamp_ms
        )
    for batch in decode_batches((KAFKA / f"{0:020d}.log").read_bytes()):
        if batch.base_offset >= first:
            loader.replay(batch)
    return loader


def everything() -> MetadataImage:
    image = image_with(topics={"orders": 3, "a.b": 1}, levels=KAFKA_LEVELS)
    records: list[Message] = [
        PartitionChangeRecord(
            1, topic_id("orders"), isr=[], leader=-1, eligible_leader_replicas=[1]
        ),
        PartitionChangeRecord(2, topic_id("orders"), last_known_elr=[1], leader_recovery_state=1),
        BrokerRegistrationChangeRecord(1, 101, in_controlled_shutdown=1, cordoned_log_dirs=[]),
        RegisterControllerRecord(1, b"i" * 16),
        ConfigRecord(2, "orders", "retention.ms", "5"),
        ConfigRecord(4, "", "log.retention.ms", "6"),
        ClientQuotaRecord([EntityData("user", None)], "producer_byte_rate", 1024.0),
        ProducerIdsRecord(1, 101, 3000),
        AccessControlEntryRecord(b"a" * 16, 2, "orders", 3, "User:ada", "*", 3, 3),
        UserScramCredentialRecord("ada", 1, b"salt", b"stored", b"server", 4096),
        DelegationTokenRecord("User:ada", "User:ada", ["User:bob"], 1, 2, 3, "t1"),
    ]
    return replayed(image, records)


def test_a_snapshot_loses_nothing() -> None:
    image = everything()
    assert loaded(snapshot_of(image), image.offset + 1, image.epoch) == image


def test_an_empty_image_is_a_header_and_a_footer() -> None:
    batches = list(decode_batches(snapshot_of(EMPTY)))
    assert [batch.is_control for batch in batches] == [True, True]


def test_a_snapshot_carries_the_voters() -> None:
    voters = VotersRecord(0, [VotersRecordVoter(1, b"d" * 16)])
    data = b"".join(
        encode_snapshot(
            (),
            epoch=0,
            last_contained_log_timestamp_ms=4,
            now_ms=5,
            voters=voters,
            kraft_version=1,
        )
    )
    snapshot = decode_snapshot(data)
    assert (snapshot.control, snapshot.timestamp_ms) == ([KRaftVersionRecord(0, 1), voters], 4)


def test_a_large_image_becomes_several_batches_with_running_offsets() -> None:
    image = image_with(topics={"wide": 9000})
    batches = list(decode_batches(snapshot_of(image)))
    assert len(batches) > 3
    ends = [batch.last_offset + 1 for batch in batches[:-1]]
    assert ends == [batch.base_offset for batch in batches[1:]]
    assert loaded(snapshot_of(image), image.offset + 1, 1) == image


@pytest.mark.parametrize("level", [7, 8, 14, 15, 17, 22, 25])
def test_a_snapshot_has_the_records_of_its_metadata_version(level: int) -> None:
    levels = {"metadata.version": level}
    image = image_with(topics={"orders": 1}, levels=levels)
    again = loaded(snapshot_of(image), image.offset + 1, 1)
    assert again.features == levels
    assert again.topics.keys() == image.topics.keys()
    assert again.brokers.keys() == image.brokers.keys()


def test_a_truncated_snapshot_is_rejected() -> None:
    batches = list(
        encode_snapshot(
            image_records(everything()), epoch=1, last_contained_log_timestamp_ms=0, now_ms=7
        )
    )
    with pytest.raises(CorruptMetadata, match="incomplete"):
        decode_snapshot(b"".join(batches[:-1]))
    with pytest.raises(CorruptMetadata, match="not a complete batch"):
        decode_snapshot(b"".join(batches)[:-1])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000000047-0000000002.checkpoint", SnapshotId(47, 2)),
        ("00000000000000000000-0000000000.checkpoint", SnapshotId(0, 0)),
        ("00000000000000000047-0000000002-abc.checkpoint.part", None),
        ("00000000000000000047-0000000002.checkpoint.deleted", None),
        ("0047-02.checkpoint", None),
        ("quorum-state", None),
        ("leader-epoch-checkpoint", None),
    ],
)
def test_names_of_snapshots_are_parsed(name: str, expected: SnapshotId | None) -> None:
    assert SnapshotId.parse(name) == expected
    if expected is not None:
        assert expected.file_name == name


def test_kafkas_log_is_replayed_whole() -> None:
    """A log of Kafka 4.3.1: topics, quotas, credentials, ACLs, a restart, then kill -9."""
    image = kafkas_log().publish().image
    assert [(topic.name, len(topic.partitions)) for topic in image.topics.values()] == [
        ("orders", 4)
    ]
    assert image.configs_of(2, "orders") == {"cleanup.policy": "compact", "retention.ms": "3600000"}
    assert image.configs_of(4, "") == {"min.insync.replicas": "1", "log.retention.ms": "7200000"}
    assert dict(image.features) == KAFKA_LEVELS
    assert image.client_quotas == {(("user", "ada"),): {"producer_byte_rate": 1024.0}}
    assert list(image.scram_credentials) == [(1, "ada")]
    assert [acl.principal for acl in image.acls.values()] == ["User:ada"]
    assert (image.next_producer_id, image.epoch, image.brokers[1].epoch) == (1000, 2, 41)
    assert image.is_active(1)
    partition = image.topics["orders"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 2, 2)
    assert (partition.isr, partition.elr, partition.last_known_elr) == ((1,), (), ())


def test_kafkas_snapshot_and_the_log_after_it_agree_with_the_whole_log() -> None:
    assert kafkas_log(38).publish().image == kafkas_log().publish().image


def test_our_snapshot_of_kafkas_metadata_equals_kafkas_own() -> None:
    theirs = decode_snapshot((KAFKA / SnapshotId(38, 1).file_name).read_bytes())
    loader = MetadataLoader()
    for batch in decode_batches((KAFKA / f"{0:020d}.log").read_bytes()):
        if batch.base_offset < 38:
            loader.replay(batch)
    ours = [record.message for record in image_records(loader.publish().image)]
    assert sorted(map(comparable, ours)) == sorted(map(comparable, theirs.records))


def comparable(record: Message) -> str:
    """Kafka lists a node's features in the order of a hash map, which means nothing."""
    if isinstance(record, RegisterBrokerRecord | RegisterControllerRecord):
        record.features.sort(key=lambda feature: feature.name)
    return repr(record)
