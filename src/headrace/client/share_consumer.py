"""A member of a share group, which processes records one by one (KIP-932).

Members do not own partitions. The broker locks each record for one member, and delivers it to
another if it is released or its lock expires. The next poll accepts a record, or with
`share.acknowledgement.mode=explicit` the call of `accept`, `release` or `reject`.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, Self, TypeVar

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message

from headrace.client.cluster import Cluster
from headrace.client.librdkafka import PASSING, ClientFailure, created, exception_for, raised
from headrace.client.librdkafka_log import FoldedLog
from headrace.client.properties import InvalidProperty, Properties, split
from headrace.errors import HeadraceError, UnknownTopicOrPartition

_log = logging.getLogger(__name__)

T = TypeVar("T")

_ITERATION_S = 1.0
_RETRY_S = 0.05
_LOOK_S_MAX = 2.0
_LOOK_S_MIN = 0.05
_MODE = "share.acknowledgement.mode"
_MODES = ("implicit", "explicit")
_IMPLICIT = f"single records need {_MODE}=explicit; without it the next poll accepts all"
_BEGIN = (
    "auto.offset.reset has no effect in a share group, because its start is a setting of the group;"
    " set it before the first member joins with"
    " `headrace configs alter group {group} --set share.auto.offset.reset={value}`"
)
_QUIET = frozenset({KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART})


class ShareConsumer:
    """A member of a share group; close it, or use it in a `with` statement."""

    def __init__(self, properties: Properties) -> None:
        if not hasattr(confluent_kafka, "ShareConsumer"):
            raise ClientFailure("share groups need confluent-kafka 2.16 or newer")
        given, self._own = split(properties)
        check(given)
        given["max.poll.records"] = self._own.max_poll_records
        self._given = given
        self._unseen_topics: list[str] = []
        self._ready: list[Message] = []
        self._rest: Iterator[Message] = iter(())
        settings = {"client.id": "headrace", "logger": FoldedLog(), **given}
        self._consumer = created(confluent_kafka.ShareConsumer, settings)

    def subscribe(self, topics: Sequence[str] | str) -> None:
        """Subscribe to topics."""
        self._unseen_topics = [topics] if isinstance(topics, str) else list(topics)
        _done(lambda: self._consumer.subscribe(self._unseen_topics))

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def poll(self, timeout_s: float = 1.0) -> list[Message]:
        """Return records as soon as possible, or none after the timeout.

        The next call accepts them, unless acknowledgement is explicit.
        """
        self.fetch(timeout_s)
        return self.hand_out()

    def __iter__(self) -> Iterator[Message]:
        """Yield records one by one without end."""
        while True:
            self.fetch(_ITERATION_S)
            yield from self.hand_out_singly()

    def fetch(self, timeout_s: float) -> bool:
        """Fetch records unless some are pending; return whether there are any."""
        self._ready += self._rest
        self._rest = iter(())
        if not self._ready:
            deadline = time.monotonic() + timeout_s
            self._look_for_topics(timeout_s / 2)
            self._ready = self._received(deadline)
        return bool(self._ready)

    def hand_out(self) -> list[Message]:
        """Return the pending records."""
        ready, self._ready = self._ready, []
        return ready

    def hand_out_singly(self) -> Iterator[Message]:
        """Iterate over the pending records; those not consumed come first next time."""
        self._rest = iter(self.hand_out())
        return self._rest

    def accept(self, message: Message) -> None:
        """Acknowledge a processed record."""
        self._acknowledge(message, confluent_kafka.AcknowledgeType.ACCEPT)

    def release(self, message: Message) -> None:
        """Return a record to the group, which delivers it again."""
        self._acknowledge(message, confluent_kafka.AcknowledgeType.RELEASE)

    def reject(self, message: Message) -> None:
        """Reject a record that cannot be processed, so that it is not delivered again."""
        self._acknowledge(message, confluent_kafka.AcknowledgeType.REJECT)

    def commit(self, timeout_s: float | None = None) -> None:
        """Send the acknowledgements, and wait for the broker's answer."""
        wait_s = self._own.api_timeout_s if timeout_s is None else timeout_s
        outcomes = _done(lambda: self._consumer.commit_sync(wait_s))
        for partition, failure in outcomes.items():
            if failure is not None:
                raise raised(failure, f"{partition.topic}-{partition.partition}") from None

    def commit_async(self) -> None:
        """Send the acknowledgements without waiting."""
        _done(self._consumer.commit_async)

    def close(self) -> None:
        """Leave the group; unacknowledged records go to other members."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _received(self, deadline: float) -> list[Message]:
        """Wait for records; passing errors do not end the wait."""
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            batch = self._polled(left_s)
            if batch is None:
                time.sleep(min(_RETRY_S, left_s))
            if batch or time.monotonic() >= deadline:
                return batch or []

    def _polled(self, timeout_s: float) -> list[Message] | None:
        """Poll librdkafka; return None after a passing error."""
        try:
            batch = self._consumer.poll(timeout_s).records()
        except KafkaException as error:
            if _passes(error.args[0]):
                return None
            raise raised(error) from None
        except RuntimeError as error:
            raise ClientFailure(str(error)) from None
        return _without_errors(batch) if any(map(Message.error, batch)) else batch

    def _look_for_topics(self, timeout_s: float) -> None:
        """Log missing topics once: librdkafka waits for them silently."""
        if not self._unseen_topics or timeout_s < _LOOK_S_MIN:
            return
        names, self._unseen_topics = self._unseen_topics, []
        for name in missing(names, self._given, min(timeout_s, _LOOK_S_MAX)):
            _log.warning("topic does not exist yet: %s", name, extra={"topic": name})

    def _acknowledge(self, message: Message, kind: "confluent_kafka.AcknowledgeType") -> None:
        if self._given.get(_MODE) != "explicit":
            raise ClientFailure(_IMPLICIT)
        _done(lambda: self._consumer.acknowledge(message, kind))


def check(given: dict[str, Any]) -> None:
    """Reject settings that librdkafka ignores, or rejects with an unclear error."""
    if not given.get("group.id"):
        raise InvalidProperty("a ShareConsumer needs group.id, the name of its share group")
    if "auto.offset.reset" in given:
        group, value = given["group.id"], given["auto.offset.reset"]
        raise InvalidProperty(_BEGIN.format(group=group, value=value))
    if _MODE in given:
        mode = str(given[_MODE]).lower()
        if mode not in _MODES:
            raise InvalidProperty(f"{_MODE} is {' or '.join(_MODES)}, not {given[_MODE]!r}")
        given[_MODE] = mode


def missing(topics: Sequence[str], properties: Mapping[str, Any], timeout_s: float) -> list[str]:
    """Return the missing topics; none after an error, which librdkafka reports as well."""
    try:
        bootstrap = str(properties.get("bootstrap.servers", ""))
        with closing(Cluster(bootstrap, properties, timeout_s)) as cluster:
            found = cluster.metadata(topics).topics
    except HeadraceError:
        return []
    return [one.name or "" for one in found if one.error_code == UnknownTopicOrPartition.code]


def _done(call: Callable[[], T]) -> T:
    """Call librdkafka and translate its errors, also those of a closed consumer."""
    try:
        return call()
    except KafkaException as error:
        raise raised(error) from None
    except RuntimeError as error:  # Base class of confluent-kafka's IllegalStateException.
        raise ClientFailure(str(error)) from None


def _passes(error: KafkaError) -> bool:
    code = error.code()
    return code in _QUIET or (not error.fatal() and (error.retriable() or code in PASSING))


def _without_errors(batch: list[Message]) -> list[Message]:
    """Return the records of a batch; raise an error that does not pass."""
    for message in batch:
        error = message.error()
        if error is not None and not _passes(error):
            raise exception_for(error)
    return [message for message in batch if message.error() is None]
