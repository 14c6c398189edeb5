"""Records as work to be shared out one by one: a member of a share group (KIP-932).

Members do not own partitions; the broker gives each record to one of them, locks it for a while,
and gives it to another if it comes back. A record is accepted when the next poll comes, or with
`share.acknowledgement.mode=explicit` by what `acknowledge` says.
"""

import logging
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from headrace.client.librdkafka import PASSING, ClientFailure, exception_for, raised
from headrace.client.properties import Properties, split

_ITERATION_S = 1.0
_DEFAULTS: dict[str, Any] = {
    "client.id": "headrace",
    "logger": logging.getLogger("headrace.client.librdkafka"),
}
_QUIET = frozenset({KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART})


class ShareConsumer:
    """A member of a share group; close it, or use it in a `with`."""

    def __init__(self, properties: Properties) -> None:
        if not hasattr(confluent_kafka, "ShareConsumer"):
            raise ClientFailure("share groups need confluent-kafka 2.16 or newer")
        given, self._own = split(properties)
        given["max.poll.records"] = self._own.max_poll_records
        self._ready: list[Message] = []
        self._rest: Iterator[Message] = iter(())
        try:
            self._consumer = confluent_kafka.ShareConsumer({**_DEFAULTS, **given})
        except KafkaException as error:
            raise raised(error) from None

    def subscribe(self, topics: Sequence[str] | str) -> None:
        """Take work from these topics."""
        self._consumer.subscribe([topics] if isinstance(topics, str) else list(topics))

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def poll(self, timeout_s: float = 1.0) -> list[Message]:
        """The next records as soon as there are any, or none when the time is up.

        Those of the last time are accepted by that, unless acknowledgement is explicit.
        """
        self.fetch(timeout_s)
        return self.hand_out()

    def __iter__(self) -> Iterator[Message]:
        """Records without end, one by one."""
        while True:
            self.fetch(_ITERATION_S)
            yield from self.hand_out_singly()

    def fetch(self, timeout_s: float) -> bool:
        """Let records lie ready; whether there are any. `poll` is this, and `hand_out`."""
        self._ready += self._rest
        self._rest = iter(())
        if not self._ready:
            self._ready = self._received(timeout_s)
        return bool(self._ready)

    def hand_out(self) -> list[Message]:
        """The records that lie ready."""
        ready, self._ready = self._ready, []
        return ready

    def hand_out_singly(self) -> Iterator[Message]:
        """The records that lie ready; those that the application leaves come first next time."""
        self._rest = iter(self.hand_out())
        return self._rest

    def accept(self, message: Message) -> None:
        """The work is done."""
        self._acknowledge(message, confluent_kafka.AcknowledgeType.ACCEPT)

    def release(self, message: Message) -> None:
        """The work could not be done here or now; another member gets it."""
        self._acknowledge(message, confluent_kafka.AcknowledgeType.RELEASE)

    def reject(self, message: Message) -> None:
        """The work cannot be done at all; nobody gets it any more."""
        self._acknowledge(message, confluent_kafka.AcknowledgeType.REJECT)

    def commit(self, timeout_s: float | None = None) -> None:
        """Send the acknowledgements now, and wait until the broker has them."""
        wait_s = self._own.api_timeout_s if timeout_s is None else timeout_s
        try:
            outcomes = self._consumer.commit_sync(wait_s)
        except KafkaException as error:
            raise raised(error) from None
        for partition, failure in outcomes.items():
            if failure is not None:
                raise raised(failure, f"{partition.topic}-{partition.partition}") from None

    def commit_async(self) -> None:
        """Send the acknowledgements now, without waiting."""
        self._consumer.commit_async()

    def close(self) -> None:
        """Leave the group; records without acknowledgement go to other members."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _received(self, timeout_s: float) -> list[Message]:
        try:
            batch = self._consumer.poll(timeout_s).records()
        except KafkaException as error:
            if _passes(error.args[0]):
                return []
            raise raised(error) from None
        return _without_errors(batch) if any(map(Message.error, batch)) else batch

    def _acknowledge(self, message: Message, kind: "confluent_kafka.AcknowledgeType") -> None:
        try:
            self._consumer.acknowledge(message, kind)
        except KafkaException as error:
            raise raised(error) from None


def _passes(error: KafkaError) -> bool:
    code = error.code()
    return code in _QUIET or (not error.fatal() and (error.retriable() or code in PASSING))


def _without_errors(batch: list[Message]) -> list[Message]:
    """The records of a batch, unless there is an error in it that does not pass."""
    for message in batch:
        error = message.error()
        if error is not None and not _passes(error):
            raise exception_for(error)
    return [message for message in batch if message.error() is None]
