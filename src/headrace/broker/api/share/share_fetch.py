"""ShareFetch v1-2: records for a member of a share group, each for nobody else (KIP-932).

A request may bring acknowledgements of earlier records. One that finds none to take waits, until
the partitions grow or records come back. v2 can keep strictly to a number of records (KIP-1206) and
renew locks (KIP-1222).
"""

import logging
from collections.abc import Coroutine
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from headrace.broker.api.registry import api
from headrace.broker.api.share.acknowledging import (
    RENEWALS_FROM,
    Verdicts,
    acknowledge_all,
    check_member,
    partition_of,
)
from headrace.broker.delayed import Delayed, Watched
from headrace.errors import (
    InvalidRequest,
    KafkaError,
    NotLeaderOrFollower,
    ShareSessionLimitReached,
)
from headrace.metadata.features import check_share_groups
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.hot_share_fetch import SharedRecords, write_share_fetch
from headrace.protocol.schemas.share_fetch import ShareFetchRequest
from headrace.runtime.eager import finish_now
from headrace.shares.selection import Wish
from headrace.shares.sessions import FINAL_EPOCH, SessionKey, ShareSession, Target
from headrace.shares.state import SharePartitionKey

if TYPE_CHECKING:
    from headrace.broker.connection import Connection
    from headrace.broker.node import Broker
    from headrace.broker.shares.partitions import LedSharePartition, Taken
    from headrace.storage.reading import LogSlice

_log = logging.getLogger(__name__)

_INLINE_BYTES_MAX = 8 * 1024  # Up to here a read and one send are cheaper than a sendfile.
_RECORD_LIMIT = 1


@api(ApiKey.SHARE_FETCH, versions=range(1, 3))
def share_fetch(
    broker: "Broker",
    connection: "Connection",
    request: ShareFetchRequest,
    version: int,
    correlation_id: int,
) -> None:
    _ShareFetch(broker, connection, request, version, correlation_id).serve()


class _ShareFetch:
    """One request on its way: acknowledge, take records, and wait if there are none."""

    __slots__ = (
        "_broker",
        "_connection",
        "_correlation_id",
        "_errors",
        "_inline",
        "_key",
        "_led",
        "_parked_at",
        "_request",
        "_session",
        "_verdicts",
        "_version",
    )

    def __init__(
        self,
        broker: "Broker",
        connection: "Connection",
        request: ShareFetchRequest,
        version: int,
        correlation_id: int,
    ) -> None:
        self._broker = broker
        self._connection = connection
        self._request = request
        self._version = version
        self._correlation_id = correlation_id
        self._parked_at = 0
        self._key: SessionKey
        self._session: ShareSession
        self._verdicts: Verdicts = {}
        self._led: dict[Target, LedSharePartition] = {}
        self._errors: dict[Target, KafkaError] = {}
        self._inline: dict[Target, bytes] = {}  # Records that go out with the answer's own bytes.

    def serve(self) -> None:
        try:
            self._begin()
        except ShareSessionLimitReached as error:
            self._refuse_later(error)
            return
        except KafkaError as error:
            self._refuse(error)
            return
        rest = finish_now(self._acknowledge())
        if rest is None:
            self._fetch()
        else:
            self._park()
            self._connection.wait()
            self._broker.tasks.start(self._fetch_after(rest), "share fetch")

    async def _fetch_after(self, rest: Coroutine[Any, Any, None]) -> None:
        try:
            await rest
            if not self._connection.closed:
                self._fetch()
        except Exception:
            _log.exception("a share fetch of %s failed; it is closed", self._connection.peer)
            self._connection.close()

    # --- the session ------------------------------------------------------------------------------

    def _begin(self) -> None:
        request = self._request
        check_share_groups(self._broker.image.features)
        self._key = check_member(request.group_id, request.member_id)
        if request.share_acquire_mode not in (0, _RECORD_LIMIT):
            raise InvalidRequest(f"there is no share acquire mode {request.share_acquire_mode}")
        renews = self._version >= RENEWALS_FROM and request.is_renew_ack
        limits = (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)
        if renews and any(limits):
            raise InvalidRequest(
                "a request that renews locks takes no records: max_bytes, min_bytes, "
                "max_records and max_wait_ms must be 0"
            )
        wanted = [
            Target(topic.topic_id, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        ]
        forgotten = [
            Target(topic.topic_id, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ]
        self._session = self._broker.share_partitions.sessions.fetch(
            self._key,
            request.share_session_epoch,
            wanted,
            forgotten,
            self._connection,
            has_acknowledgements=any(
                partition.acknowledgement_batches
                for topic in request.topics
                for partition in topic.partitions
            ),
        )

    async def _acknowledge(self) -> None:
        request = self._request
        said = [
            (Target(topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
            for topic in request.topics
            for partition in topic.partitions
            if partition.acknowledgement_batches
        ]
        if said:
            may_renew = self._version >= RENEWALS_FROM and request.is_renew_ack
            self._verdicts = await acknowledge_all(
                self._broker, self._key, said, may_renew=may_renew
            )
        if request.share_session_epoch == FINAL_EPOCH:
            releasing = self._broker.share_partitions.end_session(self._key)
            if releasing is not None:
                await releasing

    # --- the records ------------------------------------------------------------------------------

    def _fetch(self) -> None:
        request = self._request
        is_over = request.share_session_epoch == FINAL_EPOCH
        if is_over or request.max_records <= 0 or request.max_bytes <= 0:
            self._answer({})
            return
        self._open()
        if self._attempt(is_last=not self._led or request.max_wait_ms <= 0):
            return
        self._park()
        delayed = Delayed(self._attempt, self._connection.close)
        delayed.park(self._broker.loop, self._watched(), request.max_wait_ms / 1000)
        self._connection.wait(delayed.abandon)

    def _open(self) -> None:
        """Find the partitions; those that nobody took from lately begin to load."""
        shares = self._broker.share_partitions
        for target in self._session.rotated(self._request.share_session_epoch):
            try:
                partition = partition_of(self._broker, *target)
            except KafkaError as error:
                self._errors[target] = error
                continue
            key = SharePartitionKey(self._key.group_id, *target)
            self._led[target] = shares.open(key, partition)

    def _watched(self) -> list[Watched]:
        watched: list[Watched] = []
        for led in self._led.values():
            watched += (led, led.partition)
        return watched

    def _attempt(self, *, is_last: bool) -> bool:
        if not is_last and self._request.min_bytes > 1 and not self._has_enough():
            return False
        taken = self._take()
        if taken or is_last or len(self._errors) >= len(self._session.targets):
            self._answer(taken)
            return True
        return False

    def _has_enough(self) -> bool:
        """Whether it is worth while to take records: once taken they are locked."""
        request = self._request
        shares = self._broker.share_partitions
        wanted = min(request.min_bytes, request.max_bytes)
        found = 0
        for target, led in self._led.items():
            try:
                found += shares.readable_bytes(led, wanted)
            except KafkaError as error:
                self._errors[target] = error
            if found >= wanted:
                return True
        return bool(self._errors)

    def _take(self) -> "dict[Target, Taken]":
        request = self._request
        shares = self._broker.share_partitions
        bytes_left = min(request.max_bytes, self._broker.settings.fetch_max_bytes)
        records_left = request.max_records
        is_strict = request.share_acquire_mode == _RECORD_LIMIT
        taken: dict[Target, Taken] = {}
        for target, led in self._led.items():
            if records_left <= 0 or bytes_left <= 0:
                break
            wish = Wish(self._key.member_id, records_left, request.batch_size, is_strict)
            try:
                if not led.is_live:
                    raise led.failure or NotLeaderOrFollower(f"{led.name} is not led here any more")
                found = shares.take(led, wish, bytes_left, at_least_one=not taken)
                if found is not None and found.records.size <= _INLINE_BYTES_MAX:
                    self._inline[target] = shares.read(led, found)
            except KafkaError as error:
                self._errors[target] = error
                continue
            if found is not None:
                taken[target] = found
                bytes_left -= found.records.size
                records_left -= sum(last - first + 1 for first, last, _ in found.acquired)
        return taken

    # --- the answer -------------------------------------------------------------------------------

    def _answer(self, taken: "dict[Target, Taken]") -> None:
        topics: dict[bytes, list[SharedRecords[LogSlice]]] = {}
        told = dict.fromkeys((*taken, *self._errors, *self._verdicts, *self._session.unheard))
        self._session.unheard.clear()
        for target in told:
            topics.setdefault(target.topic_id, []).append(self._told(target, taken.get(target)))
        shares = self._broker.share_partitions
        lock_duration_ms = shares.rules_of(self._key.group_id).limits.lock_duration_ms
        parts = write_share_fetch(self._correlation_id, lock_duration_ms, list(topics.items()))
        self._send(list(parts))

    def _told(self, target: Target, taken: "Taken | None") -> "SharedRecords[LogSlice]":
        error, verdict = self._errors.get(target), self._verdicts.get(target)
        for failure in (error, verdict):
            if failure is not None:
                self._broker.metrics.requests.failed(ApiKey.SHARE_FETCH, failure.code)
        records: LogSlice | bytes | None = None
        if taken is not None:
            records = self._inline.get(target, taken.records)
            metrics = self._led[target].partition.topic.metrics
            metrics.bytes_out += taken.records.size
        return SharedRecords(
            target.partition,
            0 if error is None else error.code,
            None if error is None else str(error),
            0 if verdict is None else verdict.code,
            None if verdict is None else str(verdict),
            records=records,
            acquired=() if taken is None else taken.acquired,
        )

    def _refuse(self, error: KafkaError) -> None:
        self._broker.metrics.requests.failed(ApiKey.SHARE_FETCH, error.code)
        parts = write_share_fetch(
            self._correlation_id, 0, (), error_code=error.code, error_message=str(error)
        )
        self._send(list(parts))

    def _refuse_later(self, error: KafkaError) -> None:
        """Who finds no room would ask again at once; so it waits as long as it wanted to."""
        self._park()
        waiting = self._broker.loop.call_later(
            max(0, self._request.max_wait_ms) / 1000, self._refuse, error
        )
        self._connection.wait(waiting.cancel)

    def _park(self) -> None:
        if not self._parked_at:
            self._parked_at = perf_counter_ns()

    def _send(self, parts: "list[Any]") -> None:
        if not self._parked_at:
            self._connection.answer_parts(parts)
            return
        self._connection.finish(parts)
        waited_ns = perf_counter_ns() - self._parked_at
        self._broker.metrics.requests.served_late(
            ApiKey.SHARE_FETCH, self._version, waited_ns, waited_ns=waited_ns
        )
