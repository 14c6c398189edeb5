"""What a member of a group is told when partitions come and go.

Everything here runs inside of `poll` (or `close`), in the thread that called it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import confluent_kafka
from confluent_kafka import TopicPartition

from headrace.client.progress import Place

if TYPE_CHECKING:
    from headrace.client.consumer import Consumer


class RebalanceListener:
    """Subclass it and say what to do; each method may use the consumer that it is given."""

    def on_partitions_revoked(
        self, consumer: "Consumer", partitions: Sequence[TopicPartition]
    ) -> None:
        """Before partitions go to another member: the last chance to commit or to flush."""

    def on_partitions_assigned(
        self, consumer: "Consumer", partitions: Sequence[TopicPartition]
    ) -> None:
        """After partitions have come: the place to `seek` to offsets of one's own."""

    def on_partitions_lost(
        self, consumer: "Consumer", partitions: Sequence[TopicPartition]
    ) -> None:
        """After partitions went without a word, to a member that may be at work on them already.

        Committing is not possible any more; what was cached for them must be dropped.
        """
        self.on_partitions_revoked(consumer, partitions)


def is_cooperative(settings: Mapping[str, Any]) -> bool:
    """Whether partitions come and go one by one, rather than all at once in each rebalance."""
    strategy = str(settings.get("partition.assignment.strategy", ""))
    return settings.get("group.protocol") == "consumer" or "cooperative" in strategy


class Rebalancing:
    """Carries a group's news to the listener, and the listener's seeks into the assignment.

    librdkafka starts to read partitions when it is told to assign them, and refuses a seek before
    that. So the listener is called first, and where it wants to start is told with the assignment.
    """

    def __init__(
        self,
        consumer: "Consumer",
        listener: RebalanceListener,
        forget: Callable[[Sequence[TopicPartition]], None],
        *,
        cooperative: bool,
    ) -> None:
        self._consumer = consumer
        self._listener = listener
        self._forget = forget
        self._is_cooperative = cooperative
        self.starts: dict[Place, int] | None = None
        """Where to start partitions that are about to be assigned; None at other times."""

    def on_assign(self, client: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        self._forget(partitions)
        self.starts = {}
        try:
            self._listener.on_partitions_assigned(self._consumer, partitions)
            starts = self.starts
        finally:
            self.starts = None
        if starts:
            assign = client.incremental_assign if self._is_cooperative else client.assign
            assign([_starting(partition, starts) for partition in partitions])

    def on_revoke(
        self, _client: confluent_kafka.Consumer, partitions: list[TopicPartition]
    ) -> None:
        try:
            self._listener.on_partitions_revoked(self._consumer, partitions)
        finally:
            self._forget(partitions)

    def on_lost(self, _client: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        self._forget(partitions)
        self._listener.on_partitions_lost(self._consumer, partitions)


def _starting(partition: TopicPartition, starts: Mapping[Place, int]) -> TopicPartition:
    offset = starts.get((partition.topic, partition.partition), partition.offset)
    return TopicPartition(partition.topic, partition.partition, offset)
