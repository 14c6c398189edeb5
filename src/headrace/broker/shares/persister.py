"""The persister of share partitions: the way from their leaders to the share coordinator.

A coordinator on this node is called directly. Such an operation is a coroutine that does not wait
while this node is the only replica of `__share_group_state`: call it through `finish_now`
(`runtime/eager.py`) and it costs no task. Other coordinators are asked by the five ShareGroupState
APIs, in one request per broker, group and turn of the loop.

While a coordinator fails over its operations are retried. Each of them may be repeated: the
coordinator compares epochs, and merges batches that it has already.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from headrace.broker.peer_batches import PeerBatches, ask_peer
from headrace.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaError,
    NetworkException,
    NotCoordinator,
    error_for,
)
from headrace.metadata.image import NO_LEADER
from headrace.protocol.message import Message
from headrace.protocol.schemas import delete_share_group_state as deletion
from headrace.protocol.schemas import initialize_share_group_state as initialization
from headrace.protocol.schemas import read_share_group_state as reading
from headrace.protocol.schemas import read_share_group_state_summary as summing
from headrace.protocol.schemas import write_share_group_state as writing
from headrace.shares.state import (
    SharePartitionKey,
    SharePartitionState,
    StateBatch,
    StateChange,
    coordinator_key,
)

if TYPE_CHECKING:
    from headrace.broker.coordinators import CoordinatorResources
    from headrace.broker.shares.coordinator import ShareCoordinator

T = TypeVar("T")

_NOT_READY = (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NetworkException,
    NotCoordinator,
)
_RETRY_FOR_S = 30.0
"""Longer than a failover, which begins after the session of the failed broker."""
_BACKOFF_S, _BACKOFF_S_MAX = 0.1, 2.0
_ANSWER_S = 10.0
_ANY_EPOCH = -1


class _Target(NamedTuple):
    """A broker and a group: the states that one request can carry."""

    broker_id: int
    group_id: str


class _Row(NamedTuple):
    """One state in a request: its key, and the fields of the request."""

    key: SharePartitionKey
    fields: Any


class _Api(NamedTuple):
    """The messages of one of the five APIs."""

    request: Callable[[str, list[Any]], Message]
    topic: Callable[[Any, list[Any]], Any]


_INITIALIZE = _Api(
    initialization.InitializeShareGroupStateRequest, initialization.InitializeStateData
)
_READ = _Api(reading.ReadShareGroupStateRequest, reading.ReadStateData)
_WRITE = _Api(writing.WriteShareGroupStateRequest, writing.WriteStateData)
_DELETE = _Api(deletion.DeleteShareGroupStateRequest, deletion.DeleteStateData)
_SUMMARY = _Api(summing.ReadShareGroupStateSummaryRequest, summing.ReadStateSummaryData)


class SharePersister:
    """Read and write of share partitions' state, as `broker.share_persister`."""

    def __init__(self, coordinator: "ShareCoordinator", node: "CoordinatorResources") -> None:
        self._coordinator = coordinator
        self._node_id = node.node_id
        self._peers = node.channels("share-states")
        self._batches = {
            api: self._batches_of(api, node)
            for api in (_INITIALIZE, _READ, _WRITE, _DELETE, _SUMMARY)
        }

    async def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int) -> None:
        """Initialize a share partition's state, or reset it under a higher state epoch."""
        await self._ask(
            key,
            lambda: self._coordinator.initialize(key, state_epoch, start_offset),
            _INITIALIZE,
            lambda: initialization.PartitionData(key.partition, state_epoch, start_offset),
        )

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> SharePartitionState:
        """Return the state for a new leader, and fence the leaders of earlier epochs."""
        found = await self._ask(
            key,
            lambda: self._coordinator.read(key, leader_epoch),
            _READ,
            lambda: reading.PartitionData(key.partition, leader_epoch),
        )
        return found if isinstance(found, SharePartitionState) else _state_read(found, leader_epoch)

    async def write(self, key: SharePartitionKey, change: StateChange) -> None:
        """Add changed batches.

        If two batches contain one offset, the higher delivery count wins, and with equal counts
        the higher delivery state, in whichever order they were written.
        """
        await self._ask(
            key,
            lambda: self._coordinator.write(key, change),
            _WRITE,
            lambda: _write_row(key, change),
        )

    async def summary(self, key: SharePartitionKey) -> SharePartitionState:
        """Return the progress of delivery; the start is -1 if the state is not initialized."""
        found = await self._ask(
            key,
            lambda: self._coordinator.summary(key),
            _SUMMARY,
            lambda: summing.PartitionData(key.partition, _ANY_EPOCH),
        )
        return found if isinstance(found, SharePartitionState) else _state_summed(found)

    async def delete(self, key: SharePartitionKey) -> None:
        """Delete a share partition's state."""
        await self._ask(
            key,
            lambda: self._coordinator.delete(key),
            _DELETE,
            lambda: deletion.PartitionData(key.partition),
        )

    async def _ask(
        self,
        key: SharePartitionKey,
        here: Callable[[], Coroutine[Any, Any, SharePartitionState]],
        api: _Api,
        fields: Callable[[], Any],
    ) -> Any:
        """Return the coordinator's state, or its row in the response of another broker."""
        coordinator = self._coordinator.coordinator
        give_up_s, backoff_s = 0.0, _BACKOFF_S
        while True:
            try:
                if not coordinator.exists:
                    await coordinator.ensure_topic()
                try:
                    return await here()
                except NotCoordinator:
                    leader = coordinator.leader_of(coordinator_key(key))
                    if leader in (self._node_id, NO_LEADER):
                        raise
                return await self._ask_there(leader, api, _Row(key, fields()))
            except _NOT_READY as error:
                now_s = asyncio.get_running_loop().time()
                give_up_s = give_up_s or now_s + _RETRY_FOR_S
                if now_s >= give_up_s:
                    raise _final(error) from error
                await asyncio.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, _BACKOFF_S_MAX)

    async def _ask_there(self, leader: int, api: _Api, row: _Row) -> Any:
        found = await self._batches[api].ask(_Target(leader, row.key.group_id), row)
        if found.error_code:
            raise error_for(found.error_code, found.error_message or "")
        return found

    def _batches_of(
        self, api: _Api, node: "CoordinatorResources"
    ) -> PeerBatches[_Target, _Row, Any]:
        async def send(target: _Target, rows: list[_Row]) -> Mapping[Hashable, Any]:
            return await self._send(api, target, rows)

        return PeerBatches(node.tasks, "states of share partitions", send, lambda row: row.key)

    async def _send(self, api: _Api, target: _Target, rows: list[_Row]) -> Mapping[Hashable, Any]:
        topics: dict[Any, list[Any]] = {}
        for key, fields in rows:
            topics.setdefault(key.topic_id, []).append(fields)
        request = api.request(
            target.group_id, [api.topic(topic_id, asked) for topic_id, asked in topics.items()]
        )
        response = await ask_peer(self._peers, target.broker_id, request, timeout_s=_ANSWER_S)
        return {
            SharePartitionKey(target.group_id, topic.topic_id, one.partition): one
            for topic in response.results
            for one in topic.partitions
        }


def _final(error: KafkaError) -> KafkaError:
    """Return the error for callers, which know the errors of a coordinator only."""
    return CoordinatorNotAvailable(str(error)) if isinstance(error, NetworkException) else error


def _write_row(key: SharePartitionKey, change: StateChange) -> writing.PartitionData:
    return writing.PartitionData(
        key.partition,
        change.state_epoch,
        change.leader_epoch,
        change.start_offset,
        change.delivery_complete_count,
        [writing.StateBatch(*one) for one in change.batches],
    )


def _state_read(row: reading.PartitionResult, leader_epoch: int) -> SharePartitionState:
    return SharePartitionState(
        state_epoch=row.state_epoch,
        leader_epoch=leader_epoch,
        start_offset=row.start_offset,
        batches=tuple(
            StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
            for one in row.state_batches
        ),
    )


def _state_summed(row: summing.PartitionResult) -> SharePartitionState:
    return SharePartitionState(
        state_epoch=row.state_epoch,
        leader_epoch=row.leader_epoch,
        start_offset=row.start_offset,
        delivery_complete_count=row.delivery_complete_count,
    )
