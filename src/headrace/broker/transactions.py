"""The transaction coordinator's shell: writes steps, then markers, then the end.

A step counts when its record is committed. An end is decided by a first record (prepare), carried
into every partition by markers, and closed by a second record (complete). Whatever happens in
between, the first record is found when the partition is loaded again, and the rest is done then.

On a node that leads all the partitions this is one go without a task: an EndTxn is answered when
everything is written, and the next transaction never finds the last one still being ended.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Set
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.broker.coordinators import Coordinator, Shard
from headrace.broker.topics.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from headrace.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidRequest,
    InvalidTransactionTimeout,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
)
from headrace.metadata.features import TRANSACTION_VERSION
from headrace.runtime.eager import finish_now
from headrace.storage.appending import append_as_leader
from headrace.storage.producer_state import Origin
from headrace.transactions.coordinator import (
    NeedsProducerId,
    ProducerIdAndEpoch,
    add_partitions,
    claim,
    complete,
    end,
    fence,
    must_fence,
    verify,
)
from headrace.transactions.markers import marker_batch
from headrace.transactions.shard import TransactionShard
from headrace.transactions.states import State
from headrace.transactions.transaction import EPOCH_BUMP_FROM, TopicPartition, Transaction

if TYPE_CHECKING:
    from headrace.broker.node import Broker

log = logging.getLogger(__name__)

T = TypeVar("T")


class Verification(Enum):
    """What becomes of a partition that is not part of the transaction; newer clients know more."""

    PLAIN = "INVALID_TXN_STATE"
    ABORTABLE = "TRANSACTION_ABORTABLE"
    ADD = "it is added"


class TransactionCoordinator:
    """All transactional ids whose coordinator is this node."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.coordinator: Coordinator[TransactionShard] = Coordinator(
            broker, TRANSACTION_STATE, lambda _: TransactionShard(self)
        )

    # --- what requests ask for ----------------------------------------------------------------

    async def claim(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None
    ) -> ProducerIdAndEpoch:
        """Give an id to a producer, and lock out the one that had it.

        Kafka tells the new producer to come again while it aborts what the old one left open;
        here that is done by the time it could ask.
        """
        self._check_timeout(timeout_ms)
        shard = self._shard_of(transactional_id)
        open_ = shard.state.by_id.get(transactional_id)
        if open_ is not None and must_fence(open_, expected):
            await self._fence(shard, open_)
        step = await self._decide(
            lambda new_producer_id: claim(
                shard.state.by_id.get(transactional_id),
                transactional_id,
                timeout_ms,
                expected,
                self._broker.clock.now_ms(),
                new_producer_id,
            )
        )
        await self._write(shard, step)
        return ProducerIdAndEpoch(step.producer_id, step.producer_epoch)

    async def add(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        client_version: int,
    ) -> None:
        """Make partitions part of the open transaction, or begin one with them."""
        shard = self._shard_of(transactional_id)
        current = shard.state.by_id.get(transactional_id)
        now_ms = self._broker.clock.now_ms()
        step = add_partitions(current, producer, partitions, now_ms, client_version)
        if step is not None:
            await self._write(shard, step)

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[TopicPartition],
    ) -> dict[TopicPartition, KafkaError]:
        """Which of the partitions are not part of the open transaction."""
        shard = self._shard_of(transactional_id)
        return verify(shard.state.by_id.get(transactional_id), producer, partitions)

    async def admit(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        verification: Verification,
    ) -> dict[TopicPartition, KafkaError]:
        """May a transaction begin in these partitions? What speaks against it, for each.

        Asked before the first append to a partition, so that no transaction begins there that no
        coordinator would ever end.
        """
        try:
            if verification is Verification.ADD:
                await self.add(transactional_id, producer, partitions, EPOCH_BUMP_FROM)
                return {}
            if not self._broker.settings.transaction_partition_verification_enable:
                return {}
            missing = self.verify(transactional_id, producer, partitions)
            self._broker.metrics.coordinators.verification_failures += len(missing)
        except ProducerFenced as error:
            return dict.fromkeys(partitions, InvalidProducerEpoch(str(error)))
        except KafkaError as error:
            return dict.fromkeys(partitions, error)
        if verification is Verification.PLAIN:
            return {partition: InvalidTxnState(str(error)) for partition, error in missing.items()}
        return missing

    async def end(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        client_version: int,
        *,
        is_commit: bool,
    ) -> ProducerIdAndEpoch:
        """Commit or abort; returns the producer that may begin the next transaction."""
        shard = self._shard_of(transactional_id)
        step = await self._decide(
            lambda new_producer_id: end(
                shard.state.by_id.get(transactional_id),
                producer,
                self._broker.clock.now_ms(),
                is_commit=is_commit,
                client_version=client_version,
                new_producer_id=new_producer_id,
            )
        )
        if step is not None:
            await self._write(shard, step)
            await self._carry_through(shard, step)
        return _next_owner(shard.state.by_id[transactional_id])

    def find(self, transactional_id: str) -> Transaction | None:
        return self._shard_of(transactional_id).state.by_id.get(transactional_id)

    def __iter__(self) -> Iterator[Transaction]:
        for shard in self.coordinator.shards.values():
            yield from shard.state.by_id.values()

    def write_marker(
        self,
        partition: TopicPartition,
        producer: ProducerIdAndEpoch,
        coordinator_epoch: int,
        transaction_version: int,
        *,
        is_commit: bool,
    ) -> None:
        """End a transaction in one partition that this node leads."""
        now_ms = self._broker.clock.now_ms()
        marker = marker_batch(*producer, coordinator_epoch, now_ms, is_commit=is_commit)
        self._append_marker(partition, marker, producer, transaction_version, is_commit=is_commit)

    # --- what the shards ask for (transactions.shard.Doors) -------------------------------------

    @property
    def timeouts_interval_ms(self) -> int:
        return self._broker.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms

    @property
    def expiry_interval_ms(self) -> int:
        return self._broker.settings.transaction_remove_expired_transaction_cleanup_interval_ms

    @property
    def expiration_ms(self) -> int:
        return self._broker.settings.transactional_id_expiration_ms

    @property
    def transaction_version(self) -> int:
        return self._broker.image.features.get(TRANSACTION_VERSION, 0)

    def finish(self, transactional_id: str) -> None:
        self._run(self._finish(transactional_id), f"end of {transactional_id}'s transaction")

    def abort(self, transactional_id: str) -> None:
        self._run(self._time_out(transactional_id), f"abort of {transactional_id}'s transaction")

    # --- how -------------------------------------------------------------------------------------

    def _shard_of(self, transactional_id: str) -> Shard[TransactionShard]:
        if not transactional_id:
            raise InvalidRequest("the transactional id is empty")
        return self.coordinator.shard_for(transactional_id)

    def _check_timeout(self, timeout_ms: int) -> None:
        timeout_max_ms = self._broker.settings.transaction_max_timeout_ms
        if not 0 < timeout_ms <= timeout_max_ms:
            raise InvalidTransactionTimeout(
                f"a transaction may last from 1 to {timeout_max_ms} ms "
                f"(transaction.max.timeout.ms), not {timeout_ms}"
            )

    async def _decide(self, decision: Callable[[int | None], T]) -> T:
        """Decide, and decide again with a new producer id where one is to be given out."""
        try:
            return decision(None)
        except NeedsProducerId:
            return decision(await self._broker.producer_ids.allocate())

    async def _write(self, shard: Shard[TransactionShard], step: Transaction) -> None:
        written = shard.carry_out(shard.state.step(step))
        if asyncio.iscoroutine(written):
            await written

    async def _fence(self, shard: Shard[TransactionShard], open_: Transaction) -> None:
        transactional_id = open_.transactional_id
        step = await self._decide(
            lambda new_producer_id: fence(
                _still_open(shard.state.by_id.get(transactional_id)),
                self._broker.clock.now_ms(),
                self.transaction_version,
                new_producer_id,
            )
        )
        await self._write(shard, step)
        await self._carry_through(shard, step)

    async def _carry_through(self, shard: Shard[TransactionShard], prepared: Transaction) -> None:
        """Write the markers and close the transaction, or see to it that it is tried again."""
        try:
            is_done = self._write_markers(shard, prepared)
        except Exception:
            shard.carry_out(shard.state.finish_later(prepared))
            raise
        if is_done:
            await self._write(shard, complete(prepared, self._broker.clock.now_ms()))
        else:
            shard.carry_out(shard.state.finish_later(prepared))

    def _write_markers(self, shard: Shard[TransactionShard], prepared: Transaction) -> bool:
        """Whether every partition has its marker. Those that are gone need none.

        A partition that has seen a newer epoch of the producer or the coordinator needs none
        either: by hand or by an election the transaction has been ended there already.
        """
        producer = ProducerIdAndEpoch(prepared.producer_id, prepared.producer_epoch)
        is_commit = prepared.state is State.PREPARE_COMMIT
        version = prepared.client_version
        now_ms = self._broker.clock.now_ms()
        epoch = shard.partition.leader_epoch
        marker = marker_batch(*producer, epoch, now_ms, is_commit=is_commit)
        is_done = True
        for partition in prepared.partitions:
            try:
                self._append_marker(
                    partition, bytearray(marker), producer, version, is_commit=is_commit
                )
            except UnknownTopicOrPartition:
                continue
            except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
                log.warning(
                    "somebody newer has ended %s's transaction in %s-%d: %s",
                    prepared.transactional_id,
                    *partition,
                    error,
                )
            except KafkaError as error:
                is_done = False
                log.warning(
                    "the end of %s's transaction cannot be written to %s-%d yet: %s",
                    prepared.transactional_id,
                    *partition,
                    error,
                )
        return is_done

    def _append_marker(
        self,
        partition: TopicPartition,
        marker: bytearray,
        producer: ProducerIdAndEpoch,
        transaction_version: int,
        *,
        is_commit: bool,
    ) -> None:
        broker = self._broker
        found = broker.partitions.find(*partition)
        found_log = found.online_log()
        append_as_leader(
            found_log,
            memoryview(marker),
            found.leader_epoch,
            broker.clock.now_ms(),
            Origin.COORDINATOR,
            transaction_version,
        )
        found_log.advance_high_watermark(found_log.log_end_offset)
        if found.waiters:
            broker.wake_ups.changed(found)
        if partition[0] == CONSUMER_OFFSETS:
            broker.groups.transaction_ended(found, *producer, committed=is_commit)

    async def _finish(self, transactional_id: str) -> None:
        shard = self._shard_of(transactional_id)
        found = shard.state.by_id.get(transactional_id)
        if found is not None and found.state.is_prepared:
            await self._carry_through(shard, found)

    async def _time_out(self, transactional_id: str) -> None:
        shard = self._shard_of(transactional_id)
        found = shard.state.by_id.get(transactional_id)
        if found is not None and found.is_timed_out(self._broker.clock.now_ms()):
            log.info(
                "aborting the transaction of %s: it was open for more than %d ms",
                transactional_id,
                found.timeout_ms,
            )
            await self._fence(shard, found)

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Do what nobody waits for; a failure must not keep the shard from its other timers."""
        try:
            rest = finish_now(work)
        except KafkaError as error:
            log.warning("%s: %s", name, error)
        except Exception:
            log.exception("%s failed", name)
        else:
            if rest is not None:
                self._broker.tasks.start(rest, name)


def _next_owner(transaction: Transaction) -> ProducerIdAndEpoch:
    """Who goes on: the markers may still be under way when the client is told."""
    if transaction.state.is_prepared and transaction.next_producer_id >= 0:
        return ProducerIdAndEpoch(transaction.next_producer_id, 0)
    return ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)


def _still_open(transaction: Transaction | None) -> Transaction:
    """While a producer id was fetched the transaction may have ended by itself."""
    if transaction is None or transaction.state is not State.ONGOING:
        raise ConcurrentTransactions("the transaction is being ended; try again")
    return transaction
