"""Reading ranges of offsets in a task, also while leaders move and brokers restart.

The end of a range exists already, so brokers respond at once, and the next response is on its way
while one is decoded. Failing brokers are retried for a bounded time after the last progress.
Deleted records are always reported.
"""

import logging
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.client.addresses import BrokerUnreachable
from headrace.client.cluster import BACKOFF_MAX_S, BACKOFF_S, NoSuchTopic
from headrace.errors import (
    InconsistentTopicId,
    KafkaError,
    OffsetNotAvailable,
    OffsetOutOfRange,
    UnknownTopicId,
    error_for,
)
from headrace.protocol.schemas.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from headrace.protocol.topic_partition import TopicPartition
from headrace.protocol.uuids import ZERO, Uuid
from headrace.spark.source.brokers import Brokers, is_passing
from headrace.spark.source.client_settings import READ_COMMITTED
from headrace.spark.source.errors import DataLost, PlanOutdated, SourceError, TopicRecreated
from headrace.spark.source.offsets import EARLIEST, LATEST
from headrace.spark.source.planning import Range
from headrace.spark.source.record_columns import Decode, RecordColumns, Wanted
from headrace.spark.source.record_sets import WalkedSet, chunks, walk

_log = logging.getLogger(__name__)

ASKED_AGAIN_WAIT_MS = 250
EMPTY_ANSWERS_MAX = 3
"""Empty responses below the high watermark before the rest of a range counts as compacted."""

PLAIN_CHUNK_BYTES_MAX = 1 << 20
PLAIN_BYTES_MAX = 4 << 20
"""A worker that has decoded less, in small chunks, does not load the compiled decoder."""

_RECORD_BYTES_GUESS = 1024.0
_BYTES_MIN = 1 << 20


class Piece(NamedTuple):
    """Some records of one partition."""

    place: TopicPartition
    records: RecordColumns
    is_append_time: bool


@dataclass(slots=True)
class _Cursor:
    """The position in a range."""

    range: Range
    position: int
    empty_answers: int = 0

    @property
    def is_done(self) -> bool:
        return self.position >= self.range.end


class _Taken(NamedTuple):
    """A record set in the connection's buffer."""

    place: TopicPartition
    first: int
    end: int
    records: memoryview
    walked: WalkedSet


class RangeReader:
    """Reads ranges to their ends, in pieces."""

    def __init__(
        self,
        brokers: Brokers,
        ranges: Sequence[Range],
        wanted: Wanted,
        *,
        fails_on_data_loss: bool = True,
        timestamp_ms_min: int | None = None,
    ) -> None:
        self._brokers = brokers
        self._settings = brokers.settings
        self._wanted = wanted
        self._fails_on_data_loss = fails_on_data_loss
        self._timestamp_ms_min = timestamp_ms_min
        self._cursors = {one.place: _Cursor(one, one.first) for one in ranges if one.rows}
        self._progress_at = time.monotonic()

    def pieces(self) -> Iterator[Piece]:
        """Yield the records, in order within each partition."""
        backoff_s = BACKOFF_S
        while self._cursors:
            started = self._progress_at
            try:
                yield from self._read_some()
            except (KafkaError, BrokerUnreachable) as error:
                self._judge(error)
                if self._progress_at > started:
                    backoff_s = BACKOFF_S
                self._brokers.forget_metadata()
                time.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)

    def _judge(self, error: KafkaError | BrokerUnreachable) -> None:
        """Raise permanent errors, and passing ones after the time for retries."""
        places = ", ".join(map(str, sorted(self._cursors)))
        if isinstance(error, NoSuchTopic):
            raise SourceError(f"{error}; it existed when this batch was planned") from error
        if not is_passing(error):
            raise error
        if time.monotonic() - self._progress_at > self._settings.patience_s:
            raise SourceError(
                f"{places} cannot be read for {self._settings.patience_s:g} s: {error}; to retry"
                " longer, raise kafka.default.api.timeout.ms"
            ) from error

    def _read_some(self) -> Iterator[Piece]:
        """Read the ranges of one leader until their end, or until an error."""
        self._brokers.know({place.topic for place in self._cursors})
        node_id = self._brokers.leader_of(next(iter(self._cursors)))
        cursors = [
            cursor
            for place, cursor in self._cursors.items()
            if self._brokers.leader_of(place) == node_id
        ]
        fetcher = self._brokers.fetcher(node_id)
        try:
            fetcher.send(self._request(cursors))
            while cursors:
                taken, failure = self._take(fetcher.receive(), cursors)
                cursors = [cursor for cursor in cursors if not cursor.is_done]
                if cursors and failure is None:
                    fetcher.send(self._request(cursors))
                for one in taken:
                    yield from self._decoded(one)
                self._forget_done()
                if failure is not None:
                    raise failure
        except BrokerUnreachable:
            self._brokers.drop_fetcher(node_id)
            raise

    def _forget_done(self) -> None:
        for place in [place for place, cursor in self._cursors.items() if cursor.is_done]:
            del self._cursors[place]

    def _request(self, cursors: Sequence[_Cursor]) -> FetchRequest:
        is_asked_again = any(cursor.empty_answers for cursor in cursors)
        topics: dict[tuple[str, Uuid], list[FetchPartition]] = {}
        for cursor in cursors:
            topic_id = cursor.range.topic_id
            if topic_id == ZERO:
                topic_id = self._brokers.topic(cursor.range.place.topic).topic_id
            wanted = FetchPartition(
                partition=cursor.range.place.partition,
                fetch_offset=cursor.position,
                partition_max_bytes=self._bytes_wanted(cursor),
            )
            topics.setdefault((cursor.range.place.topic, topic_id), []).append(wanted)
        return FetchRequest(
            max_wait_ms=ASKED_AGAIN_WAIT_MS if is_asked_again else 0,
            min_bytes=1,
            max_bytes=self._settings.fetch_bytes_max,
            isolation_level=self._settings.isolation_level,
            topics=[
                FetchTopic(topic=name, topic_id=topic_id, partitions=parts)
                for (name, topic_id), parts in topics.items()
            ],
        )

    def _bytes_wanted(self, cursor: _Cursor) -> int:
        """Estimate the rest of a range, because records after its end are discarded."""
        each = self._brokers.record_bytes.get(cursor.range.place.topic, _RECORD_BYTES_GUESS)
        left = int((cursor.range.end - cursor.position) * each * 1.1) + _BYTES_MIN
        return min(self._settings.partition_bytes_max, left)

    def _take(
        self, answer: FetchResponse, cursors: Sequence[_Cursor]
    ) -> tuple[list[_Taken], KafkaError | None]:
        """Advance the cursors; return the record sets, and the failure of a partition."""
        if answer.error_code:
            raise error_for(answer.error_code, "the fetch was rejected")
        if answer.throttle_time_ms and not answer.responses:
            time.sleep(min(answer.throttle_time_ms / 1000, self._settings.request_timeout_s))
            self._progress_at = time.monotonic()
            return [], None
        parts = self._parts(answer)
        is_empty = not any(part.records for part in parts.values())
        taken: list[_Taken] = []
        failure: KafkaError | None = None
        for cursor in cursors:
            part = parts.get(cursor.range.place)
            if part is None:
                failure = OffsetNotAvailable(f"{cursor.range.place}: the broker left it out")
            elif part.error_code:
                failure = self._failed(cursor, part) or failure
            elif part.records:
                taken.append(self._advance(cursor, part))
            elif is_empty:
                failure = self._without_records(cursor, part) or failure
        return taken, failure

    def _parts(self, answer: FetchResponse) -> dict[TopicPartition, PartitionData]:
        names = {
            cursor.range.topic_id: place.topic
            for place, cursor in self._cursors.items()
            if cursor.range.topic_id != ZERO
        }
        return {
            TopicPartition(
                topic.topic or names.get(topic.topic_id) or self._brokers.name_of(topic.topic_id),
                part.partition_index,
            ): part
            for topic in answer.responses
            for part in topic.partitions
        }

    def _advance(self, cursor: _Cursor, part: PartitionData) -> _Taken:
        records = memoryview(part.records or b"")
        place, first = cursor.range.place, cursor.position
        aborted: Any = None
        if self._settings.isolation_level == READ_COMMITTED:
            aborted = [
                (one.producer_id, one.first_offset) for one in part.aborted_transactions or ()
            ]
        walked = walk(str(place), records, first, cursor.range.end, aborted, self._timestamp_ms_min)
        if walked.next_offset is None or walked.next_offset <= first:
            raise SourceError(
                f"{place}: the broker did not send a whole batch for offset {first};"
                " raise kafka.max.partition.fetch.bytes above the largest batch"
            )
        self._brokers.record_bytes[place.topic] = len(records) / (walked.next_offset - first)
        cursor.position = walked.next_offset
        cursor.empty_answers = 0
        self._progress_at = time.monotonic()
        return _Taken(place, first, cursor.range.end, records, walked)

    def _decoded(self, taken: _Taken) -> Iterator[Piece]:
        for chunk in chunks(
            str(taken.place),
            taken.records,
            taken.walked.batches,
            checks_crcs=self._settings.checks_crcs,
        ):
            decode = decoding_of(sum(block[1] - block[0] for block in chunk.blocks))
            records = decode(chunk, taken.first, taken.end, self._wanted)
            if records.rows:
                yield Piece(taken.place, records, chunk.is_append_time)

    # Missing records.

    def _without_records(self, cursor: _Cursor, part: PartitionData) -> KafkaError | None:
        """Handle an empty response: a new leader may lag behind, or the rest was compacted."""
        is_committed = self._settings.isolation_level == READ_COMMITTED
        visible = part.last_stable_offset if is_committed else part.high_watermark
        if visible < cursor.range.end:
            return OffsetNotAvailable(
                f"{cursor.range.place} should be read up to offset {cursor.range.end}, and its"
                f" {'committed ' if is_committed else ''}records end at {visible}"
            )
        cursor.empty_answers += 1
        if cursor.empty_answers >= EMPTY_ANSWERS_MAX:
            cursor.position = cursor.range.end  # Compaction removed the last records of the range.
            self._progress_at = time.monotonic()
        return None

    def _failed(self, cursor: _Cursor, part: PartitionData) -> KafkaError | None:
        place = cursor.range.place
        error = error_for(part.error_code, f"{place}: no records at {cursor.position}")
        if isinstance(error, OffsetOutOfRange):
            self._skip_deleted(cursor)
            return None
        if isinstance(error, UnknownTopicId | InconsistentTopicId):
            self._brokers.forget_metadata()
            now = self._brokers.topic(place.topic).topic_id
            if cursor.range.topic_id not in (ZERO, now):
                raise recreated(place.topic, may_continue=not self._fails_on_data_loss)
        return error

    def _skip_deleted(self, cursor: _Cursor) -> None:
        """Report and skip records that were deleted or truncated before they were read."""
        place, wanted = cursor.range.place, cursor.position
        begin = self._brokers.offsets({place: EARLIEST})[place]
        end = self._brokers.offsets({place: LATEST})[place]
        if begin <= wanted < end:
            return  # The error was temporary, as during a change of leaders.
        upto = min(begin, cursor.range.end) if wanted < begin else cursor.range.end
        report_loss(place, wanted, upto, begin, end, is_fatal=self._fails_on_data_loss)
        cursor.position = upto
        self._progress_at = time.monotonic()


_plain_bytes = 0


def decoding_of(size_bytes: int) -> Decode:
    """Return the quicker decoder for this many bytes in this process.

    Loading the compiled one takes as long as the plain one needs for some megabytes, and a small
    micro-batch in a new worker should not wait for it.
    """
    global _plain_bytes
    if "headrace.spark.source.compiled" not in sys.modules:
        _plain_bytes += size_bytes
        if size_bytes <= PLAIN_CHUNK_BYTES_MAX and _plain_bytes <= PLAIN_BYTES_MAX:
            from headrace.spark.source import plain

            return plain.decode
    from headrace.spark.source import compiled

    return compiled.decode


def report_loss(
    place: TopicPartition, first: int, upto: int, begin: int, end: int, *, is_fatal: bool
) -> None:
    """Raise an error for lost records, or log a warning if the query may continue."""
    if is_fatal:
        raise DataLost(
            f"offsets {first} to {upto - 1} of {place} are gone: the log now has {begin} to"
            f" {end - 1}. Retention or deletion was quicker than this query: raise retention.ms or"
            " read more often. To continue without these records set failOnDataLoss=false"
        )
    _log.warning(
        "records lost, continuing as failOnDataLoss=false",
        extra={
            "topic": place.topic,
            "partition": place.partition,
            "first_offset": first,
            "last_offset": upto - 1,
        },
    )


def recreated(topic: str, *, may_continue: bool) -> TopicRecreated:
    """Return the error for a recreated topic; a query may continue with its next plan."""
    what = (
        f"topic {topic!r} was deleted and recreated since this query began, or the brokers belong"
        " to another cluster. Its offsets now refer to other records."
    )
    if may_continue:
        return PlanOutdated(
            f"{what} Restart the query: with failOnDataLoss=false it then reads the new topic from"
            " its beginning"
        )
    return TopicRecreated(
        f"{what} Start with a new checkpoint and startsLocation (a pipeline: with another lake), or"
        " set failOnDataLoss=false to read the new topic from its beginning"
    )
