"""One partition of `__transaction_state` as state, with its timers (KIP-98, KIP-890).

Writing markers into other partitions is the shell's work, which the shard requests through
`Services`.
"""

from typing import Protocol

from headrace.coordination.effects import Effects, RecordFacts, Ticket, TimerKey
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.transactions.transaction import Transaction, Transactions, encode, tombstone

_TIMEOUTS = ("timeouts",)
_EXPIRY = ("expiry",)
_FINISH = "finish"
_TOMBSTONES_MAX = 1000  # In one batch, which is also one turn of the event loop.


class Services(Protocol):
    """The services of the node that a shard needs."""

    @property
    def timeouts_interval_ms(self) -> int: ...

    @property
    def expiry_interval_ms(self) -> int: ...

    @property
    def expiration_ms(self) -> int: ...

    @property
    def transaction_version(self) -> int:
        """The level of the cluster's `transaction.version`."""

    def finish(self, transactional_id: str) -> None:
        """Write the markers of a prepared transaction, and complete it."""

    def abort(self, transactional_id: str) -> None:
        """Abort a transaction that has been open for too long."""


class TransactionShard:
    """The transactional ids of one partition."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._transactions = Transactions()
        self._coming: tuple[CoordinatorRecord, Transaction] | None = None
        self.by_id = self._transactions.by_id
        self.ending: set[str] = set()
        """Prepared transactions whose markers the shell is waiting for."""
        self.retries: dict[str, int] = {}
        """The number of times that markers of a prepared transaction were missing."""

    def step(self, transaction: Transaction) -> Effects[None]:
        """Return the record of a transaction's next step."""
        record = encode(transaction, self._services.transaction_version)
        self._coming = record, transaction
        return Effects(records=[record])

    def finish_later(self, transaction: Transaction, delay_ms: int) -> Effects[None]:
        """Retry later: a marker could not be written."""
        return Effects(timers={(_FINISH, transaction.transactional_id): delay_ms})

    # The methods for the shell (coordination.effects.ShardState).

    def replay(self, record: CoordinatorRecord, facts: RecordFacts) -> None:
        """Apply a record; a step of this node is applied directly, without decoding its record."""
        coming, self._coming = self._coming, None
        if coming is not None and coming[0] is record:
            self._transactions.apply(coming[1])
        else:
            self._transactions.replay(*record)

    def end_transaction(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """Do nothing: no transaction writes to this topic."""

    def on_loaded(self, now_ms: int) -> Effects[None]:
        """Complete the transactions that a crash left between decision and last marker."""
        timers: dict[TimerKey, int | None] = {
            _TIMEOUTS: self._services.timeouts_interval_ms,
            _EXPIRY: self._services.expiry_interval_ms,
        }
        for transaction in self._transactions.prepared:
            timers[_FINISH, transaction.transactional_id] = 0
        return Effects(timers=timers)

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects[None]:
        if key == _TIMEOUTS:
            return self._time_out(now_ms)
        if key == _EXPIRY:
            return self._expire(now_ms)
        self._services.finish(key[1])
        return Effects()

    def tickets(self) -> list[Ticket]:
        return []

    def _time_out(self, now_ms: int) -> Effects[None]:
        for transaction in list(self.by_id.values()):
            if transaction.is_timed_out(now_ms):
                self._services.abort(transaction.transactional_id)
        return Effects(timers={_TIMEOUTS: self._services.timeouts_interval_ms})

    def _expire(self, now_ms: int) -> Effects[None]:
        """Remove ids that have expired, some in each round."""
        expiration_ms = self._services.expiration_ms
        expired = [
            tombstone(transaction.transactional_id)
            for transaction in self.by_id.values()
            if transaction.is_expired(now_ms, expiration_ms)
        ]
        is_rest_due = len(expired) > _TOMBSTONES_MAX
        return Effects(
            records=expired[:_TOMBSTONES_MAX],
            timers={_EXPIRY: 0 if is_rest_due else self._services.expiry_interval_ms},
        )
