"""What a task does: read ranges of offsets, whatever happens to the brokers meanwhile.

The end of a range was seen before, so nothing is waited for: brokers answer at once, and the next
answer is under way while this one is decoded. Leaders that move and brokers that restart are
followed for a bounded time, which begins anew with every record that came. Records that are gone
are never passed over in silence.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from headrace.client.addresses import BrokerUnreachable
from headrace.client.cluster import NoSuchTopic
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
from headrace.protocol.uuids import ZERO, Uuid
from headrace.spark.source.brokers import BACKOFF_S, BACKOFF_S_MAX, Brokers, is_passing
from headrace.spark.source.client_settings import READ_COMMITTED
from headrace.spark.source.errors import DataLost, PlanOutdated, SourceError, TopicRecreated
from headrace.spark.source.offsets import EARLIEST, LATEST, TopicPartition
from headrace.spark.source.planning import Range
from headrace.spark.source.record_columns import RecordColumns, Wanted, decoding_of
from headrace.spark.source.record_sets import WalkedSet, chunks, walk

logger = logging.getLogger(__name__)

ASKED_AGAIN_WAIT_MS = 250
EMPTY_ANSWERS_MAX = 3
"""So often a broker may have nothing where there should be records; then there are none."""

_RECORD_BYTES_GUESS = 1024.0
_BYTES_MIN = 1 << 20


class Piece(NamedTuple):
    """Some records of one partition."""

    place: TopicPartition
    records: RecordColumns
    is_append_time: bool


@dataclass(slots=True)
class _Cursor:
    """How far a range is read."""

    range: Range
    position: int
    empty_answers: int = 0

    @property
    def is_done(self) -> bool:
        return self.position >= self.range.end


class _Taken(NamedTuple):
    """A record set that is still in the connection's buffer."""

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
        """The records, in order within each partition."""
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
                backoff_s = min(2 * backoff_s, BACKOFF_S_MAX)

    def _judge(self, error: KafkaError | BrokerUnreachable) -> None:
        """Raise what will not pass, or has not passed for too long."""
        places = ", ".join(map(str, sorted(self._cursors)))
        if isinstance(error, NoSuchTopic):
            raise SourceError(f"{error}; it was there when this batch was planned") from error
        if not is_passing(error):
            raise error
        if time.monotonic() - self._progress_at > self._settings.patience_s:
            raise SourceError(
                f"{places} cannot be read for {self._settings.patience_s:g} s: {error};"
                " kafka.default.api.timeout.ms is how long brokers are waited for"
            ) from error

    def _read_some(self) -> Iterator[Piece]:
        """Read the ranges that one broker leads, until they end or something changes."""
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
                taken, refusal = self._take(fetcher.receive(), cursors)
                cursors = [cursor for cursor in cursors if not cursor.is_done]
                if cursors and refusal is None:
                    fetcher.send(self._request(cursors))
                for one in taken:
                    yield from self._decoded(one)
                self._forget_done()
                if refusal is not None:
                    raise refusal
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
        """Not much more than the range has: what comes after its end is thrown away."""
        each = self._brokers.record_bytes.get(cursor.range.place.topic, _RECORD_BYTES_GUESS)
        left = int((cursor.range.end - cursor.position) * each * 1.1) + _BYTES_MIN
        return min(self._settings.partition_bytes_max, left)

    def _take(
        self, answer: FetchResponse, cursors: Sequence[_Cursor]
    ) -> tuple[list[_Taken], KafkaError | None]:
        """Move the cursors over what came; what one partition is refused is told with the rest."""
        if answer.error_code:
            raise error_for(answer.error_code, "the fetch was refused")
        if answer.throttle_time_ms and not answer.responses:
            time.sleep(min(answer.throttle_time_ms / 1000, self._settings.request_timeout_s))
            self._progress_at = time.monotonic()
            return [], None
        told = self._told(answer)
        is_empty = not any(part.records for part in told.values())
        taken: list[_Taken] = []
        refusal: KafkaError | None = None
        for cursor in cursors:
            part = told.get(cursor.range.place)
            if part is None:
                refusal = OffsetNotAvailable(f"{cursor.range.place}: the broker left it out")
            elif part.error_code:
                refusal = self._refused(cursor, part) or refusal
            elif part.records:
                taken.append(self._advance(cursor, part))
            elif is_empty:
                refusal = self._missed(cursor, part) or refusal
        return taken, refusal

    def _told(self, answer: FetchResponse) -> dict[TopicPartition, PartitionData]:
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
                f"{place}: the broker sent no whole batch for offset {first};"
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

    # What is not there.

    def _missed(self, cursor: _Cursor, part: PartitionData) -> KafkaError | None:
        """Nothing came: the leader has not heard of the end yet, or nothing is left before it."""
        is_committed = self._settings.isolation_level == READ_COMMITTED
        visible = part.last_stable_offset if is_committed else part.high_watermark
        if visible < cursor.range.end:
            return OffsetNotAvailable(
                f"{cursor.range.place} is to be read up to offset {cursor.range.end}, and its"
                f" {'committed ' if is_committed else ''}records end at {visible}"
            )
        cursor.empty_answers += 1
        if cursor.empty_answers >= EMPTY_ANSWERS_MAX:
            cursor.position = cursor.range.end  # Compaction took the last records of the range.
            self._progress_at = time.monotonic()
        return None

    def _refused(self, cursor: _Cursor, part: PartitionData) -> KafkaError | None:
        place = cursor.range.place
        error = error_for(part.error_code, f"{place}: no records at {cursor.position}")
        if isinstance(error, OffsetOutOfRange):
            self._pass_over(cursor)
            return None
        if isinstance(error, UnknownTopicId | InconsistentTopicId):
            self._brokers.forget_metadata()
            now = self._brokers.topic(place.topic).topic_id
            if cursor.range.topic_id not in (ZERO, now):
                raise recreated(place.topic, may_go_on=not self._fails_on_data_loss)
        return error

    def _pass_over(self, cursor: _Cursor) -> None:
        """Records were deleted before they were read, or the log was cut."""
        place, wanted = cursor.range.place, cursor.position
        begin = self._brokers.offsets({place: EARLIEST})[place]
        end = self._brokers.offsets({place: LATEST})[place]
        if begin <= wanted < end:
            return  # It was so for a moment only, as when leaders change.
        upto = min(begin, cursor.range.end) if wanted < begin else cursor.range.end
        report_loss(place, wanted, upto, begin, end, is_fatal=self._fails_on_data_loss)
        cursor.position = upto
        self._progress_at = time.monotonic()


def report_loss(
    place: TopicPartition, first: int, upto: int, begin: int, end: int, *, is_fatal: bool
) -> None:
    """Records that nobody will see: an error, or a warning where going on is wanted."""
    what = (
        f"offsets {first} to {upto - 1} of {place} are gone: the log holds {begin} to {end - 1} now"
    )
    if is_fatal:
        raise DataLost(
            f"{what}. Retention or deletion was quicker than this query: raise retention.ms or"
            " read more often. To go on without these records set failOnDataLoss=false"
        )
    logger.warning("%s; going on without them, as failOnDataLoss=false says", what)


def recreated(topic: str, *, may_go_on: bool) -> TopicRecreated:
    """The error for a topic that is another one by now.

    Where going on is allowed it is so from the next plan on: this one is of the old topic.
    """
    what = (
        f"topic {topic!r} is not the one that this query began with: it was deleted and made again,"
        " or these are brokers of another cluster. Its offsets are other records now."
    )
    if may_go_on:
        return PlanOutdated(
            f"{what} Start the query again: it then reads the new topic from its beginning, as"
            " failOnDataLoss=false says"
        )
    return TopicRecreated(
        f"{what} Begin anew with a new checkpoint and startsLocation (a pipeline: with another"
        " lake), or set failOnDataLoss=false to read the new topic from its beginning"
    )
