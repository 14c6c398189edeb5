"""The size of records, for limits in bytes, estimated from the first waiting batches.

It takes one small fetch per leader; batch headers have sizes and numbers of records.
"""

from collections.abc import Mapping

from headrace.client.addresses import BrokerUnreachable
from headrace.errors import KafkaError
from headrace.protocol.batches import headers
from headrace.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.brokers import Brokers

SAMPLE_BYTES = 64 << 10
_SAMPLES_BYTES_MAX = 8 << 20
_RECORD_BYTES_UNKNOWN = 1024.0


def record_bytes(
    brokers: Brokers, positions: Mapping[TopicPartition, int]
) -> dict[TopicPartition, float]:
    """Estimate the bytes on the wire per record in each partition from its next batches."""
    found: dict[TopicPartition, float] = {}

    def attempt() -> None:
        for leader, share in brokers.by_leader(positions).items():
            found.update(_sampled(brokers, leader, share))

    brokers.retry(attempt)
    usual = sum(found.values()) / len(found) if found else _RECORD_BYTES_UNKNOWN
    return {place: found.get(place, usual) for place in positions}


def _sampled(
    brokers: Brokers, leader: int, share: Mapping[TopicPartition, int]
) -> dict[TopicPartition, float]:
    fetcher = brokers.fetcher(leader)
    try:
        fetcher.send(_request(brokers, share))
        answer = fetcher.receive()
    except BrokerUnreachable:
        brokers.drop_fetcher(leader)
        raise
    return _sizes(brokers, answer)


def _request(brokers: Brokers, share: Mapping[TopicPartition, int]) -> FetchRequest:
    topics: dict[str, list[FetchPartition]] = {}
    for place, offset in share.items():
        wanted = FetchPartition(
            partition=place.partition, fetch_offset=offset, partition_max_bytes=SAMPLE_BYTES
        )
        topics.setdefault(place.topic, []).append(wanted)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=_SAMPLES_BYTES_MAX,
        topics=[
            FetchTopic(topic=name, topic_id=brokers.topic(name).topic_id, partitions=parts)
            for name, parts in topics.items()
        ],
    )


def _sizes(brokers: Brokers, answer: FetchResponse) -> dict[TopicPartition, float]:
    sizes: dict[TopicPartition, float] = {}
    for topic in answer.responses:
        name = topic.topic or brokers.name_of(topic.topic_id)
        for part in topic.partitions:
            place = TopicPartition(name, part.partition_index)
            try:
                batches = [header for _, header in headers(part.records or b"")]
            except KafkaError:
                continue  # Reading these records reports the error.
            records = sum(header.last_offset_delta + 1 for header in batches)
            if records > 0:
                sizes[place] = sum(header.size for header in batches) / records
    return sizes
