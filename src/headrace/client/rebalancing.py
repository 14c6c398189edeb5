"""Rebalances of a consumer group: callbacks for assigned, revoked and lost partitions.

All callbacks run inside `poll` or `close`, in the thread of the caller.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition

from headrace.client.progress import Place

Callback = Callable[[Sequence[TopicPartition]], None]


def is_cooperative(settings: Mapping[str, Any]) -> bool:
    """Return whether rebalances are incremental, not stop-the-world."""
    strategy = str(settings.get("partition.assignment.strategy", ""))
    return settings.get("group.protocol") == "consumer" or "cooperative" in strategy


class Rebalancing:
    """Passes rebalances to the listener, and the listener's seeks to the assignment.

    librdkafka reads partitions once they are assigned, and rejects a seek before that. So the
    listener is called first, and its offsets become part of the assignment.
    """

    def __init__(
        self,
        *,
        assigned: Callback,
        revoked: Callback,
        lost: Callback,
        forget: Callback,
        cooperative: bool,
    ) -> None:
        self._assigned = assigned
        self._revoked = revoked
        self._lost = lost
        self._forget = forget
        self._is_cooperative = cooperative
        self.starts: dict[Place, int] | None = None
        """Start offsets of partitions during their assignment; None at other times."""

    def on_assign(self, client: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        self._forget(partitions)
        self.starts = {}
        try:
            self._assigned(partitions)
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
            self._revoked(partitions)
        finally:
            self._forget(partitions)

    def on_lost(self, _client: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        self._forget(partitions)
        self._lost(partitions)


def _starting(partition: TopicPartition, starts: Mapping[Place, int]) -> TopicPartition:
    offset = starts.get((partition.topic, partition.partition), partition.offset)
    return TopicPartition(partition.topic, partition.partition, offset)
