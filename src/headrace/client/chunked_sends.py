"""The sending side of chunks: one outcome for all chunks of a record, and one partition."""

import random
import threading
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaError, Message

from headrace.client.chunks import Sessions, split
from headrace.client.deliveries import Delivery
from headrace.client.partitioners import JAVA_DEFAULT, murmur2
from headrace.client.properties import InvalidProperty

_OVERHEAD_BYTES = 1_024
"""Room for the key and the headers of a chunk below the largest message."""
_MESSAGE_BYTES_MAX = 1_000_000
_FALSE = frozenset({"false", "0"})
_BYTES = bytes | bytearray | memoryview


class ChunkedSends:
    """Splits the large records of one producer."""

    def __init__(self, chunk_bytes: int, partitioner: str) -> None:
        self._chunk_bytes = chunk_bytes
        self._partitioner = partitioner
        self._sessions = Sessions()

    def applies_to(self, value: Any) -> bool:
        """Return whether a value is larger than a chunk."""
        if isinstance(value, str):
            return len(value) * 4 > self._chunk_bytes < len(value.encode())
        # Values of other types are left to librdkafka's check.
        return isinstance(value, _BYTES) and len(value) > self._chunk_bytes

    def partition_of(self, key: Any, partitions: int) -> int:
        """Return one partition for all chunks, or -1 if the key alone decides."""
        if isinstance(key, str):
            key = key.encode()
        if isinstance(key, _BYTES) and self._partitioner == JAVA_DEFAULT:
            return murmur2(bytes(key), partitions)
        if self._partitioner == "random" or (not key and self._partitioner.endswith("random")):
            return random.randrange(partitions)
        return -1

    def chunks(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int,
        delivery: Delivery,
        timestamp_ms: int,
        headers: Any,
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of each chunk for librdkafka; stop after a rejected one."""
        payload = value.encode() if isinstance(value, str) else bytes(value)
        outcomes = ChunkOutcomes(delivery)
        timestamp_ms = timestamp_ms or int(time.time() * 1000)
        session = self._sessions.take()
        try:
            for piece, described in split(payload, self._chunk_bytes, session, headers):
                outcomes.note_sent()
                yield topic, piece, key, partition, outcomes, None, timestamp_ms, described
                if outcomes.error is not None:
                    break
            outcomes.note_all_sent()
        finally:
            self._sessions.give_back(session)


class ChunkOutcomes:
    """librdkafka's callback for all chunks of a record, which has the place of its last chunk."""

    def __init__(self, delivery: Delivery) -> None:
        self.error: KafkaError | None = None
        self._delivery = delivery
        self._message: Message | None = None
        self._open = 1  # The sender itself, until it has passed the last chunk.
        self._lock = threading.Lock()  # Any thread may serve delivery reports.

    def note_sent(self) -> None:
        """Expect one more outcome."""
        with self._lock:
            self._open += 1

    def note_all_sent(self) -> None:
        """Report the outcome when all expected ones are known."""
        self._settle()

    def __call__(self, error: KafkaError | None, message: Message | None) -> None:
        """Receive the delivery report of a chunk."""
        with self._lock:
            self.error = self.error or error
            self._message = message
        self._settle()

    def _settle(self) -> None:
        with self._lock:
            self._open -= 1
            is_complete = self._open == 0
        if is_complete:
            self._delivery(self.error, self._message)


def chunked_sends(settings: dict[str, Any], chunk_bytes: int) -> ChunkedSends | None:
    """Return the splitter of a producer, or None without `chunk.bytes`; add idempotence.

    Without idempotence a retry could change the order of chunks, and their record would be lost.
    """
    if not chunk_bytes:
        return None
    message_bytes_max = int(settings.get("message.max.bytes", _MESSAGE_BYTES_MAX))
    if not 0 < chunk_bytes <= message_bytes_max - _OVERHEAD_BYTES:
        raise InvalidProperty(
            f"chunk.bytes ({chunk_bytes}) must be positive, and {_OVERHEAD_BYTES} below"
            f" max.request.size ({message_bytes_max})"
        )
    if str(settings.setdefault("enable.idempotence", True)).lower() in _FALSE:
        raise InvalidProperty("chunk.bytes needs enable.idempotence, which keeps chunks in order")
    return ChunkedSends(chunk_bytes, settings["partitioner"])
