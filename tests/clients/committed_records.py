"""A topic as a reader of committed records sees it."""

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from headrace.client.admin import Admin
from tests.processes.nodes import eventually

_STEP_S = 0.5
_STEPS_MAX = 60
_DECIDED = ("PrepareCommit", "PrepareAbort")
"""States of transactions whose outcome is decided and whose markers are being written."""


def committed_messages(bootstrap: str, topic: str) -> list[Message]:
    """All records up to where the first open transaction begins, or to the end.

    A commit is answered when it is decided; readers see it a moment later, which is waited for.
    """
    with Admin(bootstrap) as admin:
        eventually(lambda: not admin.transactions.find(states=_DECIDED))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "committed",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "enable.metrics.push": False,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
        return _read_to_the_end(consumer, set(partitions))
    finally:
        consumer.close()


def committed_values(bootstrap: str, topic: str) -> list[bytes | None]:
    """Their values, sorted, tombstones last."""
    values = [message.value() for message in committed_messages(bootstrap, topic)]
    return sorted(values, key=lambda value: (value is None, value or b""))


def _read_to_the_end(consumer: Consumer, left: set[int]) -> list[Message]:
    found: list[Message] = []
    for _ in range(_STEPS_MAX):
        first = consumer.poll(_STEP_S)
        for message in [first, *consumer.consume(10_000, 0)] if first is not None else []:
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition() or 0)
        if not left:
            return found
    raise AssertionError(f"partitions {sorted(left)} were not read to their end in time")
