"""A leader for fetchers: it answers Fetch and ListOffsets from real logs, by the rules of KRaft.

The answers are plain and obvious, so that followers can be tested without another broker.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from headrace.errors import HeadraceError
from headrace.protocol.codec import decode, encode
from headrace.protocol.message import Message
from headrace.protocol.schemas.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from headrace.protocol.schemas.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.replication.following import LATEST, Key
from headrace.replication.partition import Partition

UNKNOWN_TOPIC_ID = 100
NOT_LEADER, FENCED, UNKNOWN_EPOCH, OUT_OF_RANGE = 6, 74, 75, 1


class Lost(HeadraceError):
    """The connection to the leader was lost."""


class Leader:
    """Serves the partitions of one node; `partitions` changes as roles do."""

    def __init__(self, partitions: Iterable[Partition] = ()) -> None:
        self.partitions: dict[Key, Partition] = {
            (one.topic_id, one.index): one for one in partitions
        }
        self.requests: list[FetchRequest] = []
        self.offsets_requests: list[ListOffsetsRequest] = []
        self.errors: list[int] = []
        """Errors of whole Fetch requests, for the next ones."""
        self.partition_errors: list[int] = []
        """Errors of the first partition of the next requests."""
        self.on_fetch: Callable[[Partition, FetchPartition], None] = lambda partition, asked: None
        self.cut_bytes = 0
        """Bytes that are cut off every record set of more than one batch."""
        self._session: dict[Key, FetchPartition] = {}
        self._sent: dict[Key, tuple[int, int]] = {}
        self._epoch = 0

    # Fetch

    def fetch(self, request: FetchRequest, version: int) -> FetchResponse:
        self.requests.append(request)
        if self.errors:
            return FetchResponse(error_code=self.errors.pop(0))
        if request.session_epoch == 0:
            self._session, self._sent, self._epoch = {}, {}, 0
        elif (request.session_id, request.session_epoch) != (9, self._epoch):
            return FetchResponse(error_code=71)
        self._epoch += 1
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                self._session.pop((forgotten.topic_id, index), None)
                self._sent.pop((forgotten.topic_id, index), None)
        for topic in request.topics:
            for one in topic.partitions:
                self._session[topic.topic_id, one.partition] = one
        return self.news(request)

    def news(self, request: FetchRequest) -> FetchResponse:
        """Answer a request whose session is up to date."""
        topics: dict[bytes, FetchableTopicResponse] = {}
        for key, one in self._session.items():
            answer = self._partition(key, one, request.max_bytes)
            if self.partition_errors:
                answer = PartitionData(one.partition, self.partition_errors.pop(0))
            figures = answer.high_watermark, answer.log_start_offset
            has_news = answer.records or answer.error_code or answer.diverging_epoch.epoch >= 0
            if request.session_epoch and not has_news and self._sent.get(key) == figures:
                continue
            self._sent[key] = (-1, -1) if answer.error_code else figures
            topic_answer = topics.setdefault(key[0], FetchableTopicResponse("", key[0], []))
            topic_answer.partitions.append(answer)
        return FetchResponse(session_id=9, responses=list(topics.values()))

    def _partition(self, key: Key, asked: FetchPartition, max_bytes: int) -> PartitionData:
        partition = self.partitions.get(key)
        if partition is None:
            return PartitionData(asked.partition, UNKNOWN_TOPIC_ID)
        error = _refusal(partition, asked.current_leader_epoch)
        if error:
            return PartitionData(asked.partition, error)
        log = partition.online_log()
        answer = PartitionData(
            asked.partition,
            high_watermark=log.high_watermark,
            log_start_offset=log.log_start_offset,
        )
        if asked.last_fetched_epoch >= 0:
            epoch, end = partition.end_of_epoch(log, asked.last_fetched_epoch)
            if end < 0:
                answer.error_code = OUT_OF_RANGE
                return answer
            if epoch < asked.last_fetched_epoch or end < asked.fetch_offset:
                answer.diverging_epoch = EpochEndOffset(epoch, end)
                return answer
        if not log.log_start_offset <= asked.fetch_offset <= log.log_end_offset:
            answer.error_code = OUT_OF_RANGE
            return answer
        self.on_fetch(partition, asked)
        answer.high_watermark = log.high_watermark
        size_max = min(asked.partition_max_bytes, max_bytes)
        records = log.read(asked.fetch_offset, size_max, log.log_end_offset).read()
        size = 12 + int.from_bytes(records[8:12]) if records else 0
        answer.records = memoryview(records[: max(size, len(records) - self.cut_bytes)])
        return answer

    # ListOffsets

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        self.offsets_requests.append(request)
        by_name = {(one.topic.name, one.index): one for one in self.partitions.values()}
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    topic.name,
                    [
                        _offset(by_name.get((topic.name, one.partition_index)), one)
                        for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def _offset(
    partition: Partition | None, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    if partition is None:
        return ListOffsetsPartitionResponse(asked.partition_index, 3)
    error = _refusal(partition, asked.current_leader_epoch)
    if error:
        return ListOffsetsPartitionResponse(asked.partition_index, error)
    log = partition.online_log()
    offset = log.log_end_offset if asked.timestamp == LATEST else log.log_start_offset
    return ListOffsetsPartitionResponse(asked.partition_index, offset=offset)


def _refusal(partition: Partition, epoch: int) -> int:
    if epoch < partition.leader_epoch:
        return FENCED
    if epoch > partition.leader_epoch:
        return UNKNOWN_EPOCH
    return 0 if partition.is_led else NOT_LEADER


class Channel:
    """A connection to a leader that passes every message through the codec.

    A fetch without news waits until the leader is `nudge`d, the connection is closed or its time is
    up.
    """

    def __init__(self, leader: Leader) -> None:
        self.leader = leader
        self.is_closed = False
        self.waits = asyncio.Event()
        """Set while a fetch waits for news."""
        self._nudged: asyncio.Future[None] | None = None

    async def ask(
        self, request: Message, *, version: int | None = None, timeout_s: float = 30.0
    ) -> Any:
        assert version is not None
        received = decode(type(request), version, encode(request, version))
        if isinstance(received, ListOffsetsRequest):
            offsets = self.leader.list_offsets(received)
            return decode(ListOffsetsResponse, version, encode(offsets, version))
        assert isinstance(received, FetchRequest)
        answer = self.leader.fetch(received, version)
        if not answer.responses and not answer.error_code:
            self._nudged = asyncio.get_running_loop().create_future()
            self.waits.set()
            try:
                async with asyncio.timeout(received.max_wait_ms / 1000):
                    await self._nudged
            except TimeoutError:
                self.waits.clear()
            answer = self.leader.news(received)
        return decode(FetchResponse, version, encode(answer, version))

    def nudge(self) -> None:
        """Have the waiting fetch answered with what the leader has now."""
        self.waits.clear()
        assert self._nudged is not None
        self._nudged.set_result(None)

    def close(self) -> None:
        self.is_closed = True
        if self._nudged is not None and not self._nudged.done():
            self.waits.clear()
            self._nudged.set_exception(Lost("the connection was closed"))
