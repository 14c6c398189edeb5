"""The states of a transaction, and which may follow which."""

from enum import IntEnum


class State(IntEnum):
    """Where a transactional id stands; the numbers are those in `__transaction_state`."""

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
        """The name under which clients and tools know the state."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Whether the end is decided and only the markers are missing."""
        return self is State.PREPARE_COMMIT or self is State.PREPARE_ABORT

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is open: the id may be claimed, begin anew, or expire."""
        return self in _AT_REST


_AT_REST = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})

BY_LABEL = {state.label: state for state in State}

# DEAD and PREPARE_EPOCH_FENCE are never written: an expired id leaves a tombstone, and a fence is
# written as the abort that it is. Other versions of Kafka know the numbers, so do we.
MAY_FOLLOW: dict[State, frozenset[State]] = {
    State.EMPTY: _AT_REST,
    State.ONGOING: _AT_REST | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    # With transaction.version 2 an abort is written even where nothing was begun: it is how a
    # producer that is not sure gets a new epoch.
    State.PREPARE_ABORT: _AT_REST | {State.ONGOING, State.PREPARE_EPOCH_FENCE},
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: _AT_REST,
    State.PREPARE_EPOCH_FENCE: frozenset({State.ONGOING}),
}
"""For each state, those it may be entered from."""
