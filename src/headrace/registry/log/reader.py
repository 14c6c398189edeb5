"""Read `_schemas` from its first record on, for as long as the registry runs.

A thread of its own passes on each answer of the broker and waits until its records are replayed,
so at most one answer is in memory.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from headrace.client.admin import Admin
from headrace.client.partitions import LATEST
from headrace.client.properties import Properties
from headrace.errors import HeadraceError, OffsetOutOfRange, error_for
from headrace.protocol.batches import Record, headers, records_of
from headrace.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from headrace.protocol.schemas.metadata import MetadataResponseTopic
from headrace.registry.settings import RegistrySettings

_log = logging.getLogger(__name__)

_FETCH_BYTES_MAX = 8 << 20
_FETCH_WAIT_MS = 500
_ANSWER_S_MIN = 5.0
_PAUSE_S = 0.2
_PAUSE_MAX_S = 5.0
_STOP_S_MAX = 2.0
_EMPTY_MAX = 4
"""Empty answers accepted before the end: compaction may have removed the last records."""


class Read(NamedTuple):
    """Records, and the next offset to read; compaction leaves gaps between them."""

    records: Sequence[Record]
    next_offset: int


class LogReader:
    """The reader of the topic's only partition."""

    def __init__(self, properties: Properties, settings: RegistrySettings) -> None:
        # A silent broker times out before the requests that wait for records do.
        timeout_s = max(_ANSWER_S_MIN, settings.kafkastore_timeout_ms / 1000)
        self._admin = Admin(properties, timeout_s=timeout_s)
        self._topic = settings.kafkastore_topic
        self._described: MetadataResponseTopic | None = None
        self._next_offset = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def load(self, take: Callable[[Read], None]) -> int:
        """Read all present records in the calling thread; return the next offset."""
        end = self._admin.partitions.offsets(self._topic, LATEST)[0].offset
        empty_left = _EMPTY_MAX
        while self._next_offset < end and empty_left:
            before = self._next_offset
            take(self._fetch(_FETCH_WAIT_MS))
            empty_left -= self._next_offset == before
        if self._next_offset < end:
            fields = {"topic": self._topic, "offset": self._next_offset, "end_offset": end}
            _log.warning("topic ends before its end offset", extra=fields)
        return self._next_offset

    def follow(
        self, take: Callable[[Read], None], on_failure: Callable[[HeadraceError], None]
    ) -> None:
        """Continue in a thread, which calls `take`; it returns once the records are replayed."""
        self._thread = threading.Thread(
            target=self._run, args=(take, on_failure), name="registry-reader", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is None:
            self._admin.close()
        else:
            self._thread.join(_STOP_S_MAX)  # The thread closes the client itself.

    def _run(
        self, take: Callable[[Read], None], on_failure: Callable[[HeadraceError], None]
    ) -> None:
        pause_s = _PAUSE_S
        while not self._stop.is_set():
            try:
                read = self._fetch(_FETCH_WAIT_MS)
                if read.records:
                    take(read)
                pause_s = _PAUSE_S
            except OffsetOutOfRange as error:
                on_failure(error)
                return
            except (HeadraceError, OSError) as error:
                fields = {"topic": self._topic, "error": str(error)}
                _log.warning("schema topic not read, retrying", extra=fields)
                self._described = None
                self._stop.wait(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_MAX_S)
        self._admin.close()

    def _fetch(self, wait_ms: int) -> Read:
        """Fetch the next records; none if none arrive in time."""
        topic = self._described = self._described or self._admin.cluster.topic(self._topic)
        wanted = FetchPartition(
            partition=0, fetch_offset=self._next_offset, partition_max_bytes=_FETCH_BYTES_MAX
        )
        request = FetchRequest(
            topics=[FetchTopic(topic=self._topic, topic_id=topic.topic_id, partitions=[wanted])],
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=_FETCH_BYTES_MAX,
        )
        leader = topic.partitions[0].leader_id
        answer = self._admin.cluster.ask(request, FetchResponse, leader)
        if answer.error_code:
            raise error_for(answer.error_code, "Fetch")
        part = answer.responses[0].partitions[0] if answer.responses else None
        if part is not None and part.error_code:
            raise error_for(part.error_code, f"{self._topic} at offset {self._next_offset}")
        data = bytes(part.records or b"") if part is not None else b""
        return self._decoded(data)

    def _decoded(self, data: bytes) -> Read:
        found: list[Record] = []
        first = self._next_offset
        for position, header in headers(data):
            if not header.is_control:
                found += [one for one in records_of(data, position) if one.offset >= first]
            self._next_offset = header.next_offset
        return Read(found, self._next_offset)
