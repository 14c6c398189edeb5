"""Cost of a message: microseconds of CPU to decode and to encode it, beside `kio`.

python -m benchmarks.codec
"""

from collections.abc import Callable
from io import BytesIO
from time import process_time

from kio.serial import entity_reader, entity_writer

from headrace.protocol.codec import decode, encode
from headrace.protocol.message import Message
from headrace.protocol.schemas.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.schemas.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headrace.protocol.schemas.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.schemas.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tests.builders.messages import kio_class

ROUNDS = 7
SECONDS_PER_ROUND = 0.05
TOPIC_ID = b"0123456789abcdef"
RECORDS = b"x" * 1_000


def main() -> None:
    print(f"{'':28}{'bytes':>8}{'decode':>10}{'encode':>10}{'kio: decode':>14}{'encode':>10}")
    for name, message, version in messages():
        print(row(name, message, version))


def row(name: str, message: Message, version: int) -> str:
    encoded = bytes(encode(message, version))
    view = memoryview(encoded)
    theirs = kio_class(type(message), version)
    read, write = entity_reader(theirs), entity_writer(theirs)
    entity, _ = read(encoded, 0)
    return (
        f"{name:28}{len(encoded):8}"
        f"{microseconds(lambda: decode(type(message), version, view)):10.2f}"
        f"{microseconds(lambda: encode(message, version)):10.2f}"
        f"{microseconds(lambda: read(encoded, 0)):14.2f}"
        f"{microseconds(lambda: write(BytesIO(), entity)):10.2f}"
    )


def messages() -> list[tuple[str, Message, int]]:
    """The messages that matter, in the versions that today's clients choose."""
    found: list[tuple[str, Message, int]] = [
        ("Metadata response 100 x 3", metadata(topics=100, partitions=3, replicas=3), 12),
        ("CreateTopics request", create_topics(), 7),
    ]
    for count in (1, 100):
        found += [
            (f"Fetch request {count}", fetch(count), 17),
            (f"Fetch response {count}", fetched(count), 17),
            (f"Produce request {count}", produce(count), 12),
            (f"Produce response {count}", produced(count), 12),
        ]
    return found


def metadata(topics: int, partitions: int, replicas: int) -> MetadataResponse:
    nodes = list(range(replicas))
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node, f"broker-{node}.example", 9092) for node in nodes],
        cluster_id="AAAAAAAAAAAAAAAAAAAAAA",
        controller_id=0,
        topics=[
            MetadataResponseTopic(
                name=f"topic-{topic}",
                topic_id=TOPIC_ID,
                partitions=[
                    MetadataResponsePartition(0, partition, 0, 0, nodes, nodes)
                    for partition in range(partitions)
                ],
            )
            for topic in range(topics)
        ],
    )


def create_topics() -> CreateTopicsRequest:
    configs = [CreatableTopicConfig("cleanup.policy", "compact")]
    return CreateTopicsRequest([CreatableTopic("orders", 6, 3, configs=configs)], 30_000)


def fetch(count: int) -> FetchRequest:
    partitions = [FetchPartition(index, 5, 1_000_000, -1, -1, 1 << 20) for index in range(count)]
    return FetchRequest(max_wait_ms=500, topics=[FetchTopic("", TOPIC_ID, partitions)])


def fetched(count: int) -> FetchResponse:
    partitions = [
        PartitionData(index, 0, 9, 9, 0, aborted_transactions=None, records=RECORDS)
        for index in range(count)
    ]
    return FetchResponse(responses=[FetchableTopicResponse("", TOPIC_ID, partitions)])


def produce(count: int) -> ProduceRequest:
    partitions = [PartitionProduceData(index, RECORDS) for index in range(count)]
    topic = TopicProduceData("orders", partition_data=partitions)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def produced(count: int) -> ProduceResponse:
    partitions = [PartitionProduceResponse(index, 0, 1_000, -1, 0) for index in range(count)]
    return ProduceResponse([TopicProduceResponse("orders", partition_responses=partitions)])


def microseconds(call: Callable[[], object]) -> float:
    """CPU time of one call; the best of a few rounds, because others use the machine too."""
    started = process_time()
    call()
    call()
    calls = max(1, int(SECONDS_PER_ROUND / max((process_time() - started) / 2, 1e-6)))
    return min(_round(call, calls) for _ in range(ROUNDS)) * 1e6


def _round(call: Callable[[], object], calls: int) -> float:
    started = process_time()
    for _ in range(calls):
        call()
    return (process_time() - started) / calls


if __name__ == "__main__":
    main()
