"""A shard of transactional ids: its timers, and its state after loading."""

from typing import Any

from headrace.coordination.effects import RecordFacts
from headrace.transactions.shard import TransactionShard
from headrace.transactions.states import State
from headrace.transactions.transaction import Transaction, encode
from tests.unit.transactions.test_coordinator import NOW, transaction_in

FACTS = RecordFacts(0, NOW)


class Around:
    """A node that records the requests of its shard."""

    timeouts_interval_ms = 10_000
    expiry_interval_ms = 3_600_000
    expiration_ms = 1_000_000
    transaction_version = 2

    def __init__(self) -> None:
        self.finished: list[str] = []
        self.aborted: list[str] = []

    def finish(self, transactional_id: str) -> None:
        self.finished.append(transactional_id)

    def abort(self, transactional_id: str) -> None:
        self.aborted.append(transactional_id)


def shard_with(*transactions: Transaction) -> tuple[TransactionShard, Around]:
    around = Around()
    shard = TransactionShard(around)
    for transaction in transactions:
        shard.replay(encode(transaction, 2), FACTS)
    return shard, around


def named(name: str, state: State, **fields: Any) -> Transaction:
    found = transaction_in(state, **fields)
    values = {field: getattr(found, field) for field in found.__struct_fields__}
    return Transaction(**(values | {"transactional_id": name}))


def test_a_crash_between_prepare_and_complete_is_finished_after_the_load() -> None:
    """DEL-5: a transaction that was answered as committed is committed."""
    shard, around = shard_with(
        named("a", State.PREPARE_COMMIT), named("b", State.ONGOING), named("c", State.PREPARE_ABORT)
    )
    timers = shard.on_loaded(NOW).timers
    for key, delay_ms in timers.items():
        if delay_ms == 0:
            shard.on_timer(key, NOW)
    assert around.finished == ["a", "c"]


def test_transactions_that_are_open_for_too_long_are_aborted() -> None:
    shard, around = shard_with(
        named("a", State.ONGOING), named("b", State.ONGOING, timeout_ms=90_000)
    )
    effects = shard.on_timer(("timeouts",), NOW + 60_001)
    assert around.aborted == ["a"]
    assert effects.timers == {("timeouts",): 10_000}


def test_ids_at_rest_expire() -> None:
    shard, _ = shard_with(
        named("a", State.COMPLETE_COMMIT),
        named("b", State.ONGOING),
        named("c", State.EMPTY, last_update_ms=NOW + 1),
    )
    effects = shard.on_timer(("expiry",), NOW + 1_000_000)
    for record in effects.records:
        shard.replay(record, FACTS)
    assert list(shard.by_id) == ["b", "c"]
    assert effects.timers == {("expiry",): 3_600_000}


def test_many_ids_expire_in_rounds() -> None:
    shard, _ = shard_with(*(named(str(number), State.EMPTY) for number in range(1500)))
    for _ in range(2):
        effects = shard.on_timer(("expiry",), NOW + 1_000_000)
        for record in effects.records:
            shard.replay(record, FACTS)
    assert not shard.by_id


def test_a_step_counts_when_its_record_is_replayed() -> None:
    """The previous epoch is not in the record; the shard keeps it while it lives."""
    shard, _ = shard_with()
    step = transaction_in(State.EMPTY, last_producer_epoch=3)
    effects = shard.step(step)
    assert not shard.by_id
    shard.replay(effects.records[0], FACTS)
    assert shard.by_id == {"t": step}


def test_a_step_that_was_not_written_is_dropped() -> None:
    shard, _ = shard_with()
    shard.step(transaction_in(State.EMPTY))
    written = shard.step(transaction_in(State.EMPTY, producer_id=8))
    shard.replay(written.records[0], FACTS)
    assert shard.by_id["t"].producer_id == 8
