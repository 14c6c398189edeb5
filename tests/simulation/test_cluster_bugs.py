"""The simulation of clusters finds planted bugs, each within a number of seeds.

A simulation that finds nothing proves nothing unless it is able to find something.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

from headrace.broker import fetchers
from headrace.controller.controller import Controller
from headrace.raft.leading import Leader
from headrace.raft.quorum import Quorum
from headrace.replication.in_sync_replicas import InSyncReplicas
from headrace.replication.partition import Partition
from headrace.storage import appending
from headrace.storage.leader_epochs import LeaderEpochs
from headrace.storage.log import Log
from tests.builders.simulated.storms import Failed, simulate

Plant = Callable[[pytest.MonkeyPatch], None]


def high_watermark_before_followers(patch: pytest.MonkeyPatch) -> None:
    """The leader commits a record before its followers have it."""
    patch.setattr(InSyncReplicas, "high_watermark", lambda self, leader_end, min_isr: leader_end)


def proposed_replicas_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """While a change is under way, the high watermark does not wait for its new members."""

    def high_watermark(self: InSyncReplicas, leader_end: int, min_isr: int) -> int:
        isr = self.committed if self.proposed is None else self.committed & self.proposed
        ends = [one.end_offset for replica, one in self.followers.items() if replica in isr]
        return min([leader_end, *ends])

    patch.setattr(InSyncReplicas, "high_watermark", high_watermark)


def produce_answers_before_commit(patch: pytest.MonkeyPatch) -> None:
    """acks=all is answered after the append, as acks=1 is."""

    def when_committed(self: Partition, end_offset: int, timeout_ms: int, done: Any) -> None:
        asyncio.get_running_loop().call_soon(done, None)

    patch.setattr(Partition, "when_committed", when_committed)


def truncation_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """A replica that begins to follow drops what it does not know to be committed (KIP-101)."""

    def prepare(followed: Any, log: Any) -> None:
        if log.log_end_offset > log.high_watermark:
            fetchers._cut(followed, log, log.high_watermark)
        fetchers._note(followed, log)

    patch.setattr(fetchers, "_prepare", prepare)


def no_epoch_at_the_start_of_leadership(patch: pytest.MonkeyPatch) -> None:
    """A leader does not note where its epoch begins, not even with its first record."""
    patch.setattr(Log, "begin_epoch", lambda self, leader_epoch: None)


def epochs_are_never_compared(patch: pytest.MonkeyPatch) -> None:
    """A leader takes any follower's last epoch for one that it has."""
    patch.setattr(
        LeaderEpochs,
        "end_offset_for",
        lambda self, epoch, log_end_offset: (epoch, log_end_offset),
    )


def isr_grows_by_a_follower_that_lags(patch: pytest.MonkeyPatch) -> None:
    """A follower joins once it fetches, without the committed records."""
    patch.setattr(
        InSyncReplicas,
        "may_join",
        lambda self, follower, high_watermark: (
            follower not in self.maximal and self.proposed is None
        ),
    )


def controller_answers_before_commit(patch: pytest.MonkeyPatch) -> None:
    """The controller answers once it has written its records."""
    promise = Controller._promise

    def answer_now(self: Controller, appended: Any) -> "asyncio.Future[None]":
        done = promise(self, appended)
        done.set_result(None)
        return done

    patch.setattr(Controller, "_promise", answer_now)


def leader_counts_unsynced_metadata(patch: pytest.MonkeyPatch) -> None:
    """The leader of the quorum counts itself before its records are on its disk."""
    high_watermark = Leader.high_watermark
    patch.setattr(
        Leader,
        "high_watermark",
        lambda self, voters, local, synced: high_watermark(self, voters, local, 1 << 60),
    )
    raise_to = Quorum.raise_high_watermark
    patch.setattr(
        Quorum,
        "raise_high_watermark",
        lambda self, offset: raise_to(self, min(offset, self.log.end_offset)),
    )


def follower_acknowledges_unsynced_metadata(patch: pytest.MonkeyPatch) -> None:
    """A voter fetches on before the records that it got are on its disk."""
    append = Quorum.append

    def acknowledge(self: Quorum, data: memoryview) -> None:
        append(self, data)
        if not self.is_leader:
            self.synced_offset = self.log.end_offset

    patch.setattr(Quorum, "append", acknowledge)


def followers_do_not_know_producers(patch: pytest.MonkeyPatch) -> None:
    """A new leader does not recognise the retry of a batch that it has replicated."""
    patch.setattr(appending, "_replay", lambda *_: None)


# The bound on the seeds that it takes to find each bug.
FOUND_AT_ONCE: list[tuple[Plant, int]] = [
    (high_watermark_before_followers, 3),
    (produce_answers_before_commit, 3),
    (truncation_to_the_high_watermark, 5),
    (controller_answers_before_commit, 5),
    (leader_counts_unsynced_metadata, 3),
    (follower_acknowledges_unsynced_metadata, 3),
]
FOUND_LATER: list[tuple[Plant, int]] = [
    (proposed_replicas_do_not_count, 60),
    (no_epoch_at_the_start_of_leadership, 60),
    (epochs_are_never_compared, 60),
    (isr_grows_by_a_follower_that_lags, 60),
    (followers_do_not_know_producers, 30),
]


def _names(bugs: list[tuple[Plant, int]]) -> list[str]:
    return [plant.__name__ for plant, _ in bugs]


@pytest.mark.parametrize(("plant", "seeds_max"), FOUND_AT_ONCE, ids=_names(FOUND_AT_ONCE))
def test_a_planted_bug_is_found(
    plant: Plant, seeds_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(Failed):
        _simulate_some(seeds_max)


@pytest.mark.skipif("HEADRACE_SEEDS" not in os.environ, reason="half a minute; `make sim` runs it")
@pytest.mark.parametrize(("plant", "seeds_max"), FOUND_LATER, ids=_names(FOUND_LATER))
def test_a_planted_bug_is_found_by_many_seeds(
    plant: Plant, seeds_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(Failed):
        _simulate_some(seeds_max)


def _simulate_some(seeds_max: int) -> None:
    for seed in range(seeds_max):
        simulate(seed)
