"""Any sequence of requests to a transaction coordinator: what always holds."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from headrace.errors import KafkaError
from headrace.storage.producer_state import EPOCH_MAX
from headrace.storage.topic_partition import TopicPartition
from headrace.transactions.coordinator import (
    ProducerIdAndEpoch,
    add_partitions,
    claim,
    complete,
    end,
    fence,
)
from headrace.transactions.states import State
from headrace.transactions.transaction import Transaction, Transactions, encode

NOW = 1_700_000_000_000
NAME = "t"

names = st.text(max_size=20)
partitions = st.tuples(names, st.integers(0, 2**31 - 1))
epochs = st.integers(-1, EPOCH_MAX)
ids = st.integers(0, 2**62)
transactions = st.builds(
    Transaction,
    transactional_id=names,
    producer_id=ids,
    producer_epoch=epochs,
    previous_producer_id=ids,
    next_producer_id=ids,
    timeout_ms=st.integers(0, 2**31 - 1),
    state=st.sampled_from([state for state in State if state is not State.EMPTY]),
    partitions=st.frozensets(partitions, max_size=8),
    start_ms=ids,
    last_update_ms=ids,
    client_version=st.integers(0, 2),
)


@given(transactions)
def test_a_written_transaction_is_replayed(transaction: Transaction) -> None:
    read = Transactions()
    read.replay(*encode(transaction, 2))
    assert read.by_id == {transaction.transactional_id: transaction}


steps = st.lists(
    st.tuples(
        st.sampled_from(["claim", "resume", "add", "commit", "abort", "fence", "complete"]),
        st.integers(-2, 1),  # Distance of the sender's epoch from the current one.
        st.sampled_from([0, 2]),
    ),
    max_size=60,
)


class Coordinator:
    """Writes every step and replays it, and remembers who owns the id."""

    def __init__(self, first_epoch: int) -> None:
        self.live = Transactions()
        self.replayed = Transactions()
        self.new_id = 100
        self._take(Transaction(NAME, 7, first_epoch, timeout_ms=1000, last_update_ms=NOW))

    @property
    def current(self) -> Transaction:
        return self.live.by_id[NAME]

    def try_step(self, action: str, distance: int, version: int) -> None:
        before = self.current
        sender = ProducerIdAndEpoch(before.producer_id, before.producer_epoch + distance)
        try:
            step = self._decide(action, sender, version)
        except KafkaError:
            return
        if step is not None:
            self._take(step)
            check_step(before, step)
            if distance < 0 and action in ("add", "commit", "abort"):
                raise AssertionError("an old epoch has changed something")

    def _decide(self, action: str, sender: ProducerIdAndEpoch, version: int) -> Transaction | None:
        current, self.new_id = self.current, self.new_id + 1
        match action:
            case "claim":
                return claim(current, NAME, 1000, None, NOW, self.new_id)
            case "resume":
                return claim(current, NAME, 1000, sender, NOW, self.new_id)
            case "add":
                return add_partitions(current, sender, {TopicPartition("orders", 0)}, NOW, version)
            case "fence":
                is_open = current.state is State.ONGOING
                return fence(current, NOW, version, self.new_id) if is_open else None
            case "complete":
                return complete(current, NOW) if current.state.is_prepared else None
        return end(
            current,
            sender,
            NOW,
            is_commit=action == "commit",
            client_version=version,
            new_producer_id=self.new_id,
        )

    def _take(self, step: Transaction) -> None:
        self.live.apply(step)
        self.replayed.replay(*encode(step, 2))


def check_step(before: Transaction, after: Transaction) -> None:
    """Epochs go up by one or restart with another id; open transactions have partitions."""
    if after.producer_id == before.producer_id:
        assert after.producer_epoch - before.producer_epoch in (0, 1)
    else:
        assert after.producer_epoch == 0
    assert 0 <= after.producer_epoch <= EPOCH_MAX
    if after.state is State.ONGOING:
        assert after.partitions
        assert after.start_ms >= 0
    if after.state.is_prepared:
        assert after.partitions == before.partitions


@given(st.sampled_from([0, 5, EPOCH_MAX - 3, EPOCH_MAX - 1]), steps)
def test_a_replay_gives_the_state_after_any_requests_in_any_order(
    first_epoch: int, wanted: list[tuple[str, int, int]]
) -> None:
    """PRD-16: the state loaded from the log is the state before the stop."""
    coordinator = Coordinator(first_epoch)
    for action, distance, version in wanted:
        coordinator.try_step(action, distance, version)
    known = replace(coordinator.current, last_producer_epoch=-1)
    assert coordinator.replayed.by_id == {NAME: known}
