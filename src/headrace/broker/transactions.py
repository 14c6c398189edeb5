"""The shell of the transaction coordinator: writes steps, then markers, then the end.

A step counts when its record is committed. A first record (prepare) decides the end, markers carry
it into every partition, and a second record (complete) closes it. After a failure in between, the
next load of the partition finds the first record and finishes the transaction.

EndTxn may be answered once the first record is committed. It waits a little for the rest, because
the next transaction would meet CONCURRENT_TRANSACTIONS. A node that leads all the partitions, and
has no followers, needs no task for this.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Set
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.broker.coordinators import Coordinator, CoordinatorResources, Shard
from headrace.broker.markers import Ending, MarkerWriter, Missing
from headrace.broker.topics.internal_topics import TRANSACTION_STATE
from headrace.broker.verification import RemoteVerification
from headrace.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidRequest,
    InvalidTransactionTimeout,
    InvalidTxnState,
    KafkaError,
    NotCoordinator,
    ProducerFenced,
    TransactionAbortable,
)
from headrace.metadata.features import TRANSACTION_VERSION
from headrace.metadata.image import NO_LEADER
from headrace.runtime.eager import finish_now
from headrace.storage.producer_state import EPOCH_BUMP_FROM
from headrace.storage.topic_partition import TopicPartition
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
from headrace.transactions.shard import TransactionShard
from headrace.transactions.states import State
from headrace.transactions.transaction import Transaction

if TYPE_CHECKING:
    from headrace.broker.configs.topic_configs import TopicConfigs
    from headrace.broker.metadata import ClusterMetadata
    from headrace.broker.producer_ids import ProducerIds
    from headrace.coordination.metrics import CoordinatorMetrics
    from headrace.groups.shard import GroupShard

_log = logging.getLogger(__name__)

T = TypeVar("T")

_END_WAITS_S = 0.1
"""The time that EndTxn waits for markers on other nodes."""
_RETRY_MS, _RETRY_MS_MAX = 50, 1000
_ADD_RETRY_S, _ADD_RETRY_S_MAX = 0.02, 0.1
"""Kafka's add.partitions.to.txn.retry.backoff.ms and its maximum."""


class Verification(Enum):
    """The treatment of a partition outside of the transaction, by the version of the client."""

    PLAIN = "INVALID_TXN_STATE"
    ABORTABLE = "TRANSACTION_ABORTABLE"
    ADD = "it is added"


class TransactionCoordinator:
    """All transactional ids whose coordinator is this node."""

    def __init__(
        self,
        node: CoordinatorResources,
        groups: "Coordinator[GroupShard]",
        producer_ids: "ProducerIds",
        controller: "ClusterMetadata",
        configs: "TopicConfigs",
        metrics: "CoordinatorMetrics",
    ) -> None:
        self._node_id = node.node_id
        self._clock = node.clock
        self._markers = MarkerWriter(node, groups, lambda: controller.image)
        self._verification = RemoteVerification(node.channels("verification"), node.tasks)
        self._producer_ids = producer_ids
        self._controller = controller
        self._configs = configs
        self._metrics = metrics
        self._tasks = node.tasks
        self.coordinator: Coordinator[TransactionShard] = Coordinator(
            node, TRANSACTION_STATE, lambda _: TransactionShard(self)
        )

    # --- operations of requests ----------------------------------------------------------------

    async def claim(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None
    ) -> ProducerIdAndEpoch:
        """Assign a producer id, and fence the producer that had it.

        Kafka makes the new producer retry while it aborts the open transaction of the old one.
        Here the abort is finished first, unless its markers need more than a short time.
        """
        self._check_timeout(timeout_ms)
        shard = self.shard_of(transactional_id)
        open_ = shard.state.by_id.get(transactional_id)
        if open_ is not None and must_fence(open_, expected):
            await self._fence(shard, open_)
        step = await self._decide(
            lambda new_producer_id: claim(
                shard.state.by_id.get(transactional_id),
                transactional_id,
                timeout_ms,
                expected,
                self._clock.now_ms(),
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
        shard = self.shard_of(transactional_id)
        current = shard.state.by_id.get(transactional_id)
        now_ms = self._clock.now_ms()
        step = add_partitions(current, producer, partitions, now_ms, client_version)
        if step is not None:
            await self._write(shard, step)
        else:
            await shard.settled()

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[TopicPartition],
    ) -> dict[TopicPartition, KafkaError]:
        """Return an error for each partition that is not part of the open transaction."""
        shard = self.shard_of(transactional_id)
        missing = verify(shard.state.by_id.get(transactional_id), producer, partitions)
        await shard.settled()
        return missing

    async def admit(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        verification: Verification,
    ) -> dict[TopicPartition, KafkaError]:
        """Return the partitions in which a transaction may not begin, each with the reason.

        The check comes before the first append to a partition, so that every transaction in it has
        a coordinator that ends it. A producer whose last transaction is being ended waits a little:
        EndTxn was answered before all markers were written.
        """
        refused = await self._admit(transactional_id, producer, partitions, verification)
        if refused and verification is Verification.ADD:
            loop = asyncio.get_running_loop()
            give_up_s = loop.time() + _ADD_RETRY_S_MAX
            while _are_busy(refused) and loop.time() < give_up_s:
                await asyncio.sleep(_ADD_RETRY_S)
                refused = await self._admit(transactional_id, producer, partitions, verification)
        return refused

    async def _admit(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        verification: Verification,
    ) -> dict[TopicPartition, KafkaError]:
        adds = verification is Verification.ADD
        if not adds and not self._configs.settings.transaction_partition_verification_enable:
            return {}
        try:
            if adds:
                await self.add(transactional_id, producer, partitions, EPOCH_BUMP_FROM)
                return {}
            refused = await self.verify(transactional_id, producer, partitions)
        except NotCoordinator as error:
            refused = await self._refused_elsewhere(
                transactional_id, producer, partitions, error, adds=adds
            )
        except KafkaError as error:
            return _for_leader(dict.fromkeys(partitions, error), verification)
        self._metrics.verification_failures += len(refused)
        return _for_leader(refused, verification)

    async def _refused_elsewhere(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Set[TopicPartition],
        error: NotCoordinator,
        *,
        adds: bool,
    ) -> dict[TopicPartition, KafkaError]:
        """Ask the coordinator on another broker; raise `error` if there is no other."""
        try:
            coordinator = self.coordinator.leader_of(transactional_id)
            if coordinator in (self._node_id, NO_LEADER):
                raise error
            return await self._verification.refused(
                coordinator, transactional_id, producer, partitions, verify_only=not adds
            )
        except KafkaError as failure:
            return dict.fromkeys(partitions, failure)

    async def end(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        client_version: int,
        *,
        is_commit: bool,
    ) -> ProducerIdAndEpoch:
        """Commit or abort; return the producer that may begin the next transaction."""
        shard = self.shard_of(transactional_id)
        step = await self._decide(
            lambda new_producer_id: end(
                shard.state.by_id.get(transactional_id),
                producer,
                self._clock.now_ms(),
                is_commit=is_commit,
                client_version=client_version,
                new_producer_id=new_producer_id,
            )
        )
        if step is not None:
            await self._prepare(shard, step)
            await self._carry_through(shard, step)
        else:
            await shard.settled()
        return _next_owner(shard.state.by_id[transactional_id])

    def find(self, transactional_id: str) -> Transaction | None:
        return self.shard_of(transactional_id).state.by_id.get(transactional_id)

    def shard_of(self, transactional_id: str) -> Shard[TransactionShard]:
        if not transactional_id:
            raise InvalidRequest("the transactional id is empty")
        return self.coordinator.shard_for(transactional_id)

    def __iter__(self) -> Iterator[Transaction]:
        for shard in self.coordinator.shards.values():
            yield from shard.state.by_id.values()

    async def write_marker(self, ending: Ending, partition: TopicPartition) -> None:
        """End a transaction in one partition that this node leads; waits for the commit."""
        await self._markers.write_here(ending, partition)

    # --- services of the shards (transactions.shard.Services) ------------------------------------

    @property
    def timeouts_interval_ms(self) -> int:
        return self._configs.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms

    @property
    def expiry_interval_ms(self) -> int:
        return self._configs.settings.transaction_remove_expired_transaction_cleanup_interval_ms

    @property
    def expiration_ms(self) -> int:
        return self._configs.settings.transactional_id_expiration_ms

    @property
    def transaction_version(self) -> int:
        return self._controller.image.features.get(TRANSACTION_VERSION, 0)

    def finish(self, transactional_id: str) -> None:
        self._run(self._finish(transactional_id), f"end of {transactional_id}'s transaction")

    def abort(self, transactional_id: str) -> None:
        self._run(self._time_out(transactional_id), f"abort of {transactional_id}'s transaction")

    # --- steps ---------------------------------------------------------------------------------

    def _check_timeout(self, timeout_ms: int) -> None:
        timeout_max_ms = self._configs.settings.transaction_max_timeout_ms
        if not 0 < timeout_ms <= timeout_max_ms:
            raise InvalidTransactionTimeout(
                f"a transaction may last from 1 to {timeout_max_ms} ms "
                f"(transaction.max.timeout.ms), not {timeout_ms}"
            )

    async def _decide(self, decision: Callable[[int | None], T]) -> T:
        """Decide, and decide again with a new producer id if the decision needs one."""
        try:
            return decision(None)
        except NeedsProducerId:
            return decision(await self._producer_ids.allocate())

    async def _write(self, shard: Shard[TransactionShard], step: Transaction) -> None:
        written = shard.apply(shard.state.step(step))
        if asyncio.iscoroutine(written):
            await written

    async def _fence(self, shard: Shard[TransactionShard], open_: Transaction) -> None:
        transactional_id = open_.transactional_id
        step = await self._decide(
            lambda new_producer_id: fence(
                _still_open(shard.state.by_id.get(transactional_id)),
                self._clock.now_ms(),
                self.transaction_version,
                new_producer_id,
            )
        )
        await self._prepare(shard, step)
        await self._carry_through(shard, step)

    async def _prepare(self, shard: Shard[TransactionShard], step: Transaction) -> None:
        """Write the decision to end a transaction; it is carried through if it gets committed.

        The replicas may be too slow for the request that made the decision.
        """
        try:
            await self._write(shard, step)
        except KafkaError:
            if shard.is_live and shard.state.by_id.get(step.transactional_id) is step:
                self._retry(shard, step)
            raise

    async def _carry_through(self, shard: Shard[TransactionShard], prepared: Transaction) -> None:
        """Write the markers and close the transaction, or schedule a retry.

        Markers that wait for other nodes are awaited for a short time; the rest is done later.
        """
        transactional_id = prepared.transactional_id
        if transactional_id in shard.state.ending:
            return
        ending = Ending(
            ProducerIdAndEpoch(prepared.producer_id, prepared.producer_epoch),
            prepared.state is State.PREPARE_COMMIT,
            shard.leader_epoch,
            prepared.client_version,
        )
        try:
            missing = self._markers.write(ending, prepared.partitions)
        except Exception:
            self._retry(shard, prepared)
            raise
        if isinstance(missing, dict):
            self._conclude(shard, prepared, missing)
            return
        shard.state.ending.add(transactional_id)
        work = self._conclude_later(shard, prepared, missing)
        task = self._tasks.start(work, f"end of {transactional_id}'s transaction")
        await asyncio.wait([task], timeout=_END_WAITS_S)

    async def _conclude_later(
        self,
        shard: Shard[TransactionShard],
        prepared: Transaction,
        writing: Coroutine[Any, Any, Missing],
    ) -> None:
        transactional_id = prepared.transactional_id
        try:
            missing = await writing
        except Exception:
            self._retry(shard, prepared)
            raise
        finally:
            shard.state.ending.discard(transactional_id)
        self._conclude(shard, prepared, missing)

    def _conclude(
        self, shard: Shard[TransactionShard], prepared: Transaction, missing: Missing
    ) -> None:
        """Close a transaction whose markers are all committed, or schedule a retry."""
        transactional_id = prepared.transactional_id
        if not shard.is_live or shard.state.by_id.get(transactional_id) is not prepared:
            return
        if missing:
            if transactional_id not in shard.state.retries:
                _log.warning(
                    "transaction markers not written, retrying",
                    extra=_missing_fields(prepared, missing),
                )
            self._retry(shard, prepared)
            return
        shard.state.retries.pop(transactional_id, None)
        try:
            shard.post(shard.state.step(complete(prepared, self._clock.now_ms())))
        except KafkaError as error:
            _log.warning(
                "end of a transaction not written, retrying",
                extra={"transactional_id": transactional_id, "error": str(error)},
            )
            self._retry(shard, prepared)

    def _retry(self, shard: Shard[TransactionShard], prepared: Transaction) -> None:
        if not shard.is_live:
            return
        retries = shard.state.retries
        count = retries.get(prepared.transactional_id, 0)
        retries[prepared.transactional_id] = count + 1
        delay_ms = min(_RETRY_MS << min(count, 10), _RETRY_MS_MAX)
        shard.post(shard.state.finish_later(prepared, delay_ms))

    async def _finish(self, transactional_id: str) -> None:
        shard = self.shard_of(transactional_id)
        found = shard.state.by_id.get(transactional_id)
        if found is None or not found.state.is_prepared:
            return
        try:
            await shard.settled()  # A failover may take back a decision that was loaded.
        except KafkaError:
            self._retry(shard, found)
            return
        if shard.state.by_id.get(transactional_id) is found:
            await self._carry_through(shard, found)

    async def _time_out(self, transactional_id: str) -> None:
        shard = self.shard_of(transactional_id)
        found = shard.state.by_id.get(transactional_id)
        if found is not None and found.is_timed_out(self._clock.now_ms()):
            _log.info(
                "transaction timed out, aborting",
                extra={"transactional_id": transactional_id, "timeout_ms": found.timeout_ms},
            )
            await self._fence(shard, found)

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run a step without a client; its failure must not stop the other timers of the shard."""
        try:
            rest = finish_now(work)
        except KafkaError as error:
            _log.warning("transaction step postponed", extra={"step": name, "error": str(error)})
        except Exception:
            _log.exception("transaction step failed", extra={"step": name})
        else:
            if rest is not None:
                self._tasks.start(_postponed_if_refused(rest, name), name)


async def _postponed_if_refused(work: Coroutine[Any, Any, None], name: str) -> None:
    try:
        await work
    except KafkaError as error:
        _log.warning("transaction step postponed", extra={"step": name, "error": str(error)})


def _missing_fields(prepared: Transaction, missing: Missing) -> dict[str, object]:
    (topic, index), error = next(iter(missing.items()))
    return {
        "transactional_id": prepared.transactional_id,
        "partitions": len(missing),
        "topic": topic,
        "partition": index,
        "error": str(error),
    }


def _for_leader(
    refused: dict[TopicPartition, KafkaError], verification: Verification
) -> dict[TopicPartition, KafkaError]:
    """Return the errors of a coordinator as the leaders of partitions use them."""
    return {place: _known_to_leader(error, verification) for place, error in refused.items()}


def _known_to_leader(error: KafkaError, verification: Verification) -> KafkaError:
    match error:
        case ProducerFenced():
            return InvalidProducerEpoch(str(error))
        case TransactionAbortable() if verification is Verification.PLAIN:
            return InvalidTxnState(str(error))
        case _:
            return error


def _next_owner(transaction: Transaction) -> ProducerIdAndEpoch:
    """The producer of the next transaction, which may begin before all markers are written."""
    if transaction.state.is_prepared and transaction.next_producer_id >= 0:
        return ProducerIdAndEpoch(transaction.next_producer_id, 0)
    return ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)


def _still_open(transaction: Transaction | None) -> Transaction:
    """Raise if the transaction ended while a producer id was fetched."""
    if transaction is None or transaction.state is not State.ONGOING:
        raise ConcurrentTransactions("the transaction is being ended; try again")
    return transaction


def _are_busy(refused: dict[TopicPartition, KafkaError]) -> bool:
    return all(isinstance(error, ConcurrentTransactions) for error in refused.values())
