"""A snapshot restores the same image after any changes of the cluster."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import EMPTY, MetadataImage
from headrace.metadata.image_records import feature_records, image_records
from headrace.metadata.loader import MetadataLoader
from headrace.metadata.records import VersionedRecord, decode_batches, encode_batch
from headrace.metadata.snapshots import decode_snapshot, encode_snapshot
from headrace.protocol.message import Message
from headrace.protocol.schemas.records.metadata import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.builders.metadata_images import KAFKA_LEVELS

ids = st.lists(st.integers(0, 5), max_size=3, unique=True)
uuids = st.binary(min_size=16, max_size=16)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """A run of records in which each one fits those before it."""
    records: list[Message] = feature_records(KAFKA_LEVELS)
    partitions: dict[bytes, int] = {}
    for step in range(draw(st.integers(0, 30))):
        match draw(st.sampled_from(["topic", "partition", "change", "remove", "config", "broker"])):
            case "topic":
                topic_id = bytes([step]) * 16  # An id is never used again.
                records.append(TopicRecord(f"topic-{step}", topic_id))
                partitions[topic_id] = 0
            case "partition" if partitions:
                topic_id = draw(st.sampled_from(sorted(partitions)))
                replicas = draw(ids.filter(bool))
                records.append(
                    PartitionRecord(
                        partitions[topic_id],
                        topic_id,
                        replicas,
                        draw(ids),
                        leader=replicas[0],
                        directories=[draw(uuids)] * len(replicas),
                    )
                )
                partitions[topic_id] += 1
            case "change" if any(partitions.values()):
                filled = sorted(one for one, count in partitions.items() if count)
                topic_id = draw(st.sampled_from(filled))
                records.append(
                    PartitionChangeRecord(
                        draw(st.integers(0, partitions[topic_id] - 1)),
                        topic_id,
                        isr=draw(st.none() | ids),
                        leader=draw(st.integers(-2, 5)),
                        eligible_leader_replicas=draw(st.none() | ids),
                        last_known_elr=draw(st.none() | ids),
                        leader_recovery_state=draw(st.integers(-1, 1)),
                    )
                )
            case "remove" if partitions:
                topic_id = draw(st.sampled_from(sorted(partitions)))
                records.append(RemoveTopicRecord(topic_id))
                del partitions[topic_id]
            case "config":
                value = draw(st.none() | st.text(max_size=5))
                records.append(ConfigRecord(4, draw(st.sampled_from(["", "1"])), "name", value))
            case "broker":
                records.append(
                    RegisterBrokerRecord(
                        draw(st.integers(0, 3)),
                        broker_epoch=step,
                        rack=draw(st.none() | st.text(max_size=3)),
                        log_dirs=draw(st.lists(uuids, max_size=2)),
                        cordoned_log_dirs=draw(st.none() | st.just([])),
                    )
                )
            case _:
                records.append(ProducerIdsRecord(1, 1, 1000 * step))
    return records


def image_after(records: list[Message]) -> MetadataImage:
    delta = ImageDelta(EMPTY)
    for record in records:
        delta.replay(record)
    return delta.image(len(records) - 1, 1, 5)


@given(histories())
def test_a_snapshot_gives_the_image_again(records: list[Message]) -> None:
    image = image_after(records)
    data = b"".join(
        encode_snapshot(image_records(image), epoch=1, last_contained_log_timestamp_ms=5, now_ms=6)
    )
    snapshot = decode_snapshot(data)
    loader = MetadataLoader()
    loader.replay_snapshot(
        snapshot.records, end_offset=len(records), epoch=1, timestamp_ms=snapshot.timestamp_ms
    )
    assert loader.publish().image == image


@given(histories(), st.lists(st.integers(1, 6), max_size=40))
def test_batches_and_publications_make_no_difference(
    records: list[Message], sizes: list[int]
) -> None:
    """Live, a record is published at once; on load, all of them together."""
    loader = MetadataLoader()
    offset = 0
    for size in [*sizes, len(records)]:
        some = [VersionedRecord(one, one.VERSIONS[-1]) for one in records[offset : offset + size]]
        if some:
            (batch,) = decode_batches(encode_batch(some, offset, 1, 5))
            loader.replay(batch)
            loader.publish()
        offset += len(some)
    assert loader.publish().image == image_after(records)
