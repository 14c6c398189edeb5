"""The states of a transaction and their transitions."""

from enum import IntEnum


class State(IntEnum):
    """The state of a transactional id, with the numbers of `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The state's name for clients and tools."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Return whether the end is decided and only the markers are missing."""
        return self is State.PREPARE_COMMIT or self is State.PREPARE_ABORT

    @property
    def is_at_rest(self) -> bool:
        """Return whether no transaction is open, so that the id may be claimed or expire."""
        return self in _AT_REST


_AT_REST = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})

BY_LABEL = {state.label: state for state in State}

# DEAD and PREPARE_EPOCH_FENCE are never written: an expired id gets a tombstone, and a fence is
# written as an abort. Both numbers are reserved by Kafka.
MAY_FOLLOW: dict[State, frozenset[State]] = {
    State.EMPTY: _AT_REST,
    State.ONGOING: _AT_REST | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    # With transaction.version 2 an abort is written even without an open transaction, because a
    # producer gets a new epoch by it.
    State.PREPARE_ABORT: _AT_REST | {State.ONGOING, State.PREPARE_EPOCH_FENCE},
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: _AT_REST,
    State.PREPARE_EPOCH_FENCE: frozenset({State.ONGOING}),
}
"""For each state, its possible predecessors."""
