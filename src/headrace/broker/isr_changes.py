"""Changes of in-sync replicas: which followers join or leave, and the requests to the controller.

A leader proposes a change and asks the controller with AlterPartition. All changes that wait leave
in one request, and one request is under way at a time. Until the answer the leader counts with
both ISRs (`replication/in_sync_replicas.py`). The metadata brings the change as well, in any order.

A follower joins when it has fetched up to the high watermark and to the start of this leadership,
and its broker is unfenced and in the life that its fetches name. It leaves after
replica.lag.time.max.ms without being caught up.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    NewLeaderElected,
    OperationNotAttempted,
    UnknownTopicId,
    UnknownTopicOrPartition,
    error_for,
)
from headrace.protocol.schemas.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from headrace.protocol.uuids import Uuid
from headrace.replication.in_sync_replicas import NEVER, UNKNOWN_EPOCH

if TYPE_CHECKING:
    from headrace.metadata.delta import ImageDelta
    from headrace.metadata.image import MetadataImage
    from headrace.protocol.message import Message
    from headrace.replication.in_sync_replicas import InSyncReplicas
    from headrace.replication.metrics import IsrMetrics
    from headrace.replication.partition import Partition
    from headrace.replication.partitions import Partitions
    from headrace.runtime.clock import Clock
    from headrace.runtime.tasks import Tasks
    from headrace.settings.broker import BrokerSettings

_log = logging.getLogger(__name__)

_RETRY_S = 0.05
_RETRY_S_MAX = 1.0
_REFUSED_S = 0.5
"""Time after which a follower that the controller has refused is proposed again."""
_EXAMPLES_MAX = 3
_RECOVERED = 0

# The controller has certainly not made these changes.
_NOT_MADE = (OperationNotAttempted.code, IneligibleReplica.code)
# It may have made them, or its metadata is newer: the metadata will bring the outcome.
_LEFT_TO_METADATA = frozenset(
    one.code
    for one in (
        FencedLeaderEpoch,
        InvalidUpdateVersion,
        UnknownTopicId,
        UnknownTopicOrPartition,
        InvalidRequest,
        NewLeaderElected,
    )
)


class _Proposal(NamedTuple):
    """A change of one partition in one leadership."""

    partition: "Partition"
    in_sync: "InSyncReplicas"
    isr: frozenset[int]
    is_expansion: bool

    @property
    def is_current(self) -> bool:
        """False once the metadata has decided, or the leadership has changed."""
        return self.partition.in_sync is self.in_sync and self.in_sync.proposed is self.isr


class IsrChanges:
    """Proposes changes of the in-sync replicas of all partitions that this broker leads."""

    def __init__(
        self,
        node_id: int,
        partitions: "Partitions",
        ask: "Callable[[Message], Awaitable[Any]]",
        clock: "Clock",
        tasks: "Tasks",
        metrics: "IsrMetrics",
        *,
        image: "Callable[[], MetadataImage]",
        broker_epoch: Callable[[], int],
        settings: "Callable[[], BrokerSettings]",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._node_id = node_id
        self._partitions = partitions
        self._ask = ask
        self._clock = clock
        self._tasks = tasks
        self._metrics = metrics
        self._image = image
        self._broker_epoch = broker_epoch
        self._settings = settings
        self._sleep = sleep
        self._waiting: dict[Partition, _Proposal] = {}
        self._refused: set[tuple[Partition, int]] = set()
        self._is_asking = False

    def start(self) -> None:
        """Look for followers that lag twice in the time that they may lag."""
        self._tasks.every(
            lambda: self._settings().replica_lag_time_max_ms / 2, self.check, "ISR check"
        )

    def follow(self, delta: "ImageDelta", image: "MetadataImage") -> None:
        """Follow the metadata: a broker that is unfenced may join, one that is fenced may not.

        Call it after the partitions have taken over the image.
        """
        if not delta.brokers.changed:
            return
        now_ms = self._clock.monotonic_ms()
        for partition in self._partitions:
            in_sync = partition.in_sync
            if in_sync is not None and len(in_sync.committed) <= len(in_sync.followers):
                self.consider(partition, now_ms)

    def check(self) -> None:
        """Propose to remove the followers that lag, and note what nothing else reports."""
        now_ms, lag_max_ms = self._clock.monotonic_ms(), self._settings().replica_lag_time_max_ms
        for partition in self._partitions:
            in_sync, log = partition.in_sync, partition.log
            if in_sync is None or log is None or log.failure is not None:
                continue
            partition.note_start()
            if in_sync.proposed is None:
                lagging = in_sync.lagging(log.log_end_offset, now_ms, lag_max_ms)
                if lagging:
                    self._propose(partition, in_sync, in_sync.committed - lagging)
            if len(in_sync.committed) <= len(in_sync.followers):
                self.consider(partition, now_ms)
            else:
                partition.advance()  # The min ISR may have been lowered.

    def consider(self, partition: "Partition", now_ms: int) -> None:
        """Propose the next follower that may join; `now_ms` is monotonic."""
        in_sync, log = partition.in_sync, partition.log
        if in_sync is None or log is None:
            return
        brokers = self._image().brokers
        eligible = set()
        for replica in in_sync.outside:
            follower, broker = in_sync.followers[replica], brokers.get(replica)
            if (
                follower.fetched_ms != NEVER
                and broker is not None
                and broker.is_active
                and follower.broker_epoch in (UNKNOWN_EPOCH, broker.epoch)
            ):
                eligible.add(replica)
        lag_max_ms = self._settings().replica_lag_time_max_ms
        in_sync.find_joining(log.log_end_offset, now_ms, lag_max_ms, eligible)
        for replica in sorted(eligible):
            if (partition, replica) not in self._refused and in_sync.may_join(
                replica, log.high_watermark
            ):
                self._propose(partition, in_sync, in_sync.committed | {replica})
                break
        partition.advance()  # One that is not joining any more does not hold it back.

    # --- requests -------------------------------------------------------------------------------

    def _propose(
        self, partition: "Partition", in_sync: "InSyncReplicas", isr: Iterable[int]
    ) -> None:
        before = in_sync.committed
        proposed = in_sync.propose(isr)
        is_expansion = not proposed <= before
        self._waiting[partition] = _Proposal(partition, in_sync, proposed, is_expansion)
        if not self._is_asking:
            self._is_asking = True
            self._tasks.start(self._ask_for_all(), "ISR changes")

    async def _ask_for_all(self) -> None:
        """Ask until nothing waits; each request takes all changes that wait by then."""
        retry_s = 0.0
        try:
            while self._waiting:
                made, self._waiting = self._waiting, {}
                asked = {one: proposal for one, proposal in made.items() if proposal.is_current}
                for partition in made.keys() - asked.keys():
                    self.consider(partition, self._clock.monotonic_ms())
                if not asked or await self._ask_for(asked, is_retry=retry_s > 0):
                    retry_s = 0.0
                    continue
                retry_s = min(retry_s * 2, _RETRY_S_MAX) or _RETRY_S
                await self._sleep(retry_s)
        finally:
            self._is_asking = False

    async def _ask_for(self, asked: "dict[Partition, _Proposal]", *, is_retry: bool) -> bool:
        """Send one request; false if some of it must be sent again."""
        unanswered = dict(asked)
        try:
            response = await self._ask(self._request(asked.values()))
            if response.error_code:
                raise error_for(response.error_code)
            self._take(response, unanswered)
        except KafkaError as error:
            self._metrics.failures += len(unanswered)
            if not is_retry:
                _log.warning(
                    "change of in-sync replicas failed, retrying",
                    extra={"count": len(unanswered), "error": str(error)},
                )
        finally:
            for partition, proposal in unanswered.items():
                self._waiting.setdefault(partition, proposal)
        return not unanswered

    def _request(self, proposals: Iterable[_Proposal]) -> AlterPartitionRequest:
        topics: dict[Uuid, list[AlterPartitionRequestPartitionData]] = {}
        for partition, in_sync, isr, _ in proposals:
            topics.setdefault(partition.topic_id, []).append(
                AlterPartitionRequestPartitionData(
                    partition_index=partition.index,
                    leader_epoch=partition.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(replica, self._epoch_of(replica, in_sync))
                        for replica in sorted(isr)
                    ],
                    # A leader that was elected uncleanly has nothing to recover.
                    leader_recovery_state=_RECOVERED,
                    partition_epoch=in_sync.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            topics=[
                AlterPartitionRequestTopicData(topic_id, partitions)
                for topic_id, partitions in topics.items()
            ],
        )

    def _epoch_of(self, replica: int, in_sync: "InSyncReplicas") -> int:
        if replica == self._node_id:
            return self._broker_epoch()
        follower = in_sync.followers.get(replica)
        return UNKNOWN_EPOCH if follower is None else follower.broker_epoch

    def _take(
        self, response: AlterPartitionResponse, unanswered: "dict[Partition, _Proposal]"
    ) -> None:
        """Take over the answers, and leave the changes that must be sent again."""
        by_place = {(one.topic_id, one.index): one for one in unanswered}
        changed: list[str] = []
        for topic in response.topics:
            for answer in topic.partitions:
                partition = by_place.get((topic.topic_id, answer.partition_index))
                proposal = unanswered.pop(partition, None) if partition is not None else None
                if partition is None or proposal is None:
                    continue
                if not answer.error_code:
                    if self._accept(proposal, answer):
                        changed.append(f"{partition.topic.name}-{partition.index}")
                elif not self._is_final(proposal, answer.error_code):
                    unanswered[partition] = proposal
        if changed:
            _log.info(
                "in-sync replicas changed",
                extra={"count": len(changed), "examples": ",".join(changed[:_EXAMPLES_MAX])},
            )

    def _accept(self, proposal: _Proposal, answer: AlterPartitionResponsePartitionData) -> bool:
        """Take over an accepted change; false if this leadership is over."""
        partition, in_sync = proposal.partition, proposal.in_sync
        if partition.in_sync is not in_sync or answer.leader_epoch != partition.leader_epoch:
            self._metrics.failures += 1
            return False
        if proposal.is_current and not in_sync.accept(answer.isr, answer.partition_epoch):
            self._metrics.failures += 1
            return False
        if proposal.is_expansion:
            self._metrics.expansions += 1
        else:
            self._metrics.shrinks += 1
        self.consider(partition, self._clock.monotonic_ms())
        return True

    def _is_final(self, proposal: _Proposal, error_code: int) -> bool:
        """Return whether a refused change is not sent again."""
        self._metrics.failures += 1
        if not proposal.is_current:
            self.consider(proposal.partition, self._clock.monotonic_ms())
            return True
        if error_code in _NOT_MADE:
            partition, in_sync = proposal.partition, proposal.in_sync
            refused = [(partition, replica) for replica in proposal.isr - in_sync.committed]
            in_sync.withdraw()
            self._refused.update(refused)
            asyncio.get_running_loop().call_later(_REFUSED_S, self._propose_again, refused)
            # Another follower need not wait for the one that was refused.
            self.consider(partition, self._clock.monotonic_ms())
            return True
        return error_code in _LEFT_TO_METADATA

    def _propose_again(self, refused: list[tuple["Partition", int]]) -> None:
        self._refused.difference_update(refused)
        for partition, _ in refused:
            self.consider(partition, self._clock.monotonic_ms())
