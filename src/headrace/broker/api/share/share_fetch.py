"""ShareFetch v1-2: acquire records for one member of a share group (KIP-932).

A request may contain acknowledgements of earlier records. A request that finds no records waits
until the partitions grow or records are released. v2 can limit the number of records strictly
(KIP-1206) and renew locks (KIP-1222).
"""

import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from headrace.broker.api.registry import api
from headrace.broker.api.share.acknowledging import (
    MEMBER_RIGHTS,
    RENEWALS_FROM,
    Verdicts,
    acknowledge_all,
    check_member,
    partition_of,
)
from headrace.broker.topics.topology import leader_nodes
from headrace.errors import InvalidRequest, KafkaError, ShareSessionLimitReached
from headrace.metadata.features import check_share_groups
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.hot_share_fetch import SharedRecords, write_share_fetch
from headrace.protocol.schemas.share_fetch import ShareFetchRequest
from headrace.replication.delayed import Watched
from headrace.runtime.eager import finish_now
from headrace.shares.selection import Pick
from headrace.shares.sessions import FINAL_EPOCH, SessionKey, ShareSession, Target
from headrace.shares.state import SharePartitionKey

if TYPE_CHECKING:
    from headrace.broker.direct_call import DirectCall
    from headrace.broker.shares.led_partition import LedSharePartition
    from headrace.broker.shares.partitions import AcquiredRecords
    from headrace.storage.reading import LogSlice

_log = logging.getLogger(__name__)

_INLINE_BYTES_MAX = 8 * 1024  # Up to here a read and one send are cheaper than a sendfile.
_RECORD_LIMIT = 1


@api(ApiKey.SHARE_FETCH, versions=range(1, 3), rights=MEMBER_RIGHTS)
def share_fetch(request: ShareFetchRequest, call: "DirectCall") -> None:
    _ShareFetch(call, request).serve()


class _ShareFetch:
    """One request: acknowledge, acquire records, and wait if there are none."""

    __slots__ = (
        "_broker",
        "_call",
        "_errors",
        "_inline",
        "_key",
        "_led",
        "_request",
        "_session",
        "_verdicts",
    )

    def __init__(self, call: "DirectCall", request: ShareFetchRequest) -> None:
        self._call = call
        self._broker = call.broker
        self._request = request
        self._key: SessionKey
        self._session: ShareSession
        self._verdicts: Verdicts = {}
        self._led: dict[Target, LedSharePartition] = {}
        self._errors: dict[Target, KafkaError] = {}
        self._inline: dict[Target, bytes] = {}  # Records that are copied into the answer.

    def serve(self) -> None:
        try:
            self._begin()
        except ShareSessionLimitReached as error:
            self._refuse_later(error)
            return
        except KafkaError as error:
            self._refuse(error)
            return
        acknowledging = finish_now(self._acknowledge())
        if acknowledging is None:
            self._fetch()
        else:
            self._call.park()
            self._broker.tasks.start(self._fetch_after(acknowledging), "share fetch")

    async def _fetch_after(self, acknowledging: Coroutine[Any, Any, None]) -> None:
        try:
            await acknowledging
            if not self._call.connection.closed:
                self._fetch()
        except Exception:
            _log.exception(
                "share fetch failed, connection closed",
                extra={"connection": self._call.connection.peer},
            )
            self._call.connection.close()

    # --- the session ------------------------------------------------------------------------------

    def _begin(self) -> None:
        request = self._request
        check_share_groups(self._broker.image.features)
        self._key = check_member(request.group_id, request.member_id, self._call.access)
        if request.share_acquire_mode not in (0, _RECORD_LIMIT):
            raise InvalidRequest(f"there is no share acquire mode {request.share_acquire_mode}")
        renews = self._call.version >= RENEWALS_FROM and request.is_renew_ack
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
            self._call.connection,
            has_acknowledgements=any(
                partition.acknowledgement_batches
                for topic in request.topics
                for partition in topic.partitions
            ),
        )

    async def _acknowledge(self) -> None:
        request = self._request
        acknowledged = [
            (Target(topic.topic_id, partition.partition_index), partition.acknowledgement_batches)
            for topic in request.topics
            for partition in topic.partitions
            if partition.acknowledgement_batches
        ]
        if acknowledged:
            may_renew = self._call.version >= RENEWALS_FROM and request.is_renew_ack
            self._verdicts = await acknowledge_all(
                self._broker, self._call.access, self._key, acknowledged, may_renew=may_renew
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
        wait_ms = request.max_wait_ms
        if not self._attempt(is_last=not self._led or wait_ms <= 0):
            self._call.park_until(self._attempt, self._watched(), wait_ms)

    def _open(self) -> None:
        """Find the share partitions; load those that are not in memory."""
        shares, access = self._broker.share_partitions, self._call.access
        for target in self._session.rotated(self._request.share_session_epoch):
            try:
                partition = partition_of(self._broker, access, *target)
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
        """Return whether `min_bytes` is met, before records are acquired, which locks them."""
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

    def _take(self) -> "dict[Target, AcquiredRecords]":
        request = self._request
        shares = self._broker.share_partitions
        bytes_left = min(request.max_bytes, self._broker.settings.fetch_max_bytes)
        records_left = request.max_records
        is_strict = request.share_acquire_mode == _RECORD_LIMIT
        taken: dict[Target, AcquiredRecords] = {}
        for target, led in self._led.items():
            if records_left <= 0 or bytes_left <= 0:
                break
            pick = Pick(self._key.member_id, records_left, request.batch_size, is_strict)
            try:
                if not led.is_live:
                    raise led.failure or led.partition.topic.not_led(led.partition.index)
                found = shares.take(led, pick, bytes_left, at_least_one=not taken)
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

    def _answer(self, taken: "dict[Target, AcquiredRecords]") -> None:
        topics: dict[bytes, list[SharedRecords[LogSlice]]] = {}
        answered = dict.fromkeys((*taken, *self._errors, *self._verdicts, *self._session.unheard))
        self._session.unheard.clear()
        for target in answered:
            topics.setdefault(target.topic_id, []).append(self._outcome(target, taken.get(target)))
        shares = self._broker.share_partitions
        lock_duration_ms = shares.rules_of(self._key.group_id).limits.lock_duration_ms
        call = self._call
        failures = [*self._errors.values(), *filter(None, self._verdicts.values())]
        nodes = leader_nodes(self._broker.image, call.connection.listener, failures)
        throttle_ms = call.charge_sent(sum(one.records.size for one in taken.values()))
        call.answer(
            *write_share_fetch(
                call.correlation_id,
                lock_duration_ms,
                list(topics.items()),
                nodes=nodes,
                throttle_ms=throttle_ms,
            )
        )

    def _outcome(
        self, target: Target, taken: "AcquiredRecords | None"
    ) -> "SharedRecords[LogSlice]":
        error, verdict = self._errors.get(target), self._verdicts.get(target)
        for failure in (error, verdict):
            if failure is not None:
                self._call.count_error(failure.code)
        leader = next((one.current_leader for one in (error, verdict) if one is not None), None)
        leader_id, leader_epoch = leader or (0, 0)
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
            leader_id,
            leader_epoch,
            records=records,
            acquired=() if taken is None else taken.acquired,
        )

    def _refuse(self, error: KafkaError) -> None:
        call = self._call
        call.count_error(error.code)
        throttle_ms = call.charge_request()
        call.answer(
            *write_share_fetch(
                call.correlation_id,
                0,
                (),
                error_code=error.code,
                error_message=str(error),
                throttle_ms=throttle_ms,
            )
        )

    def _refuse_later(self, error: KafkaError) -> None:
        """Delay the refusal by `max_wait_ms`: the client would retry at once."""
        wait_s = max(0, self._request.max_wait_ms) / 1000
        waiting = self._broker.loop.call_later(wait_s, self._refuse, error)
        self._call.park(waiting.cancel)
