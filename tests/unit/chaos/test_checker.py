"""The checker of `make chaos`: planted anomalies are found, and sound histories pass."""

from collections.abc import Callable

import pytest

from tests.chaos.checker import Kind, anomalies, counts
from tests.chaos.histories import (
    Commit,
    Delivery,
    End,
    Fetched,
    Histories,
    Outcome,
    Seen,
    Session,
    Transaction,
    Value,
    Write,
)

PLACE = ("plain", 0)
ATOMIC = ("atomic", 0)


def plain(number: int) -> Value:
    return Value("p", number)


def atomic(number: int, transaction: int) -> Value:
    return Value("t", number, transaction)


def written(place: tuple[str, int], offset: int, value: Value) -> Write:
    return Write(place, value, Outcome.DONE, offset)


def session(place: tuple[str, int], log: list[Seen], start: int = 0) -> Session:
    return Session("reader", place, True, start, list(log), group="group")


def delivery(offset: int, member: str, polled: float, accepted: float) -> Delivery:
    return Delivery("share", member, PLACE, offset, plain(offset), polled, Outcome.DONE, accepted)


def sound() -> Histories:
    """Three plain records; transaction 0 is committed, 1 aborted, and markers have offsets."""
    log = [Seen(offset, plain(offset)) for offset in range(3)]
    whole = [Seen(0, atomic(0, 0)), Seen(1, atomic(1, 0)), Seen(3, atomic(2, 1))]
    visible = whole[:2]
    return Histories(
        writes=[
            *(written(PLACE, one.offset, one.value) for one in log),
            *(written(ATOMIC, one.offset, one.value) for one in whole),
        ],
        transactions=[
            Transaction("t", 0, End.COMMIT, Outcome.DONE),
            Transaction("t", 1, End.ABORT, Outcome.DONE),
        ],
        sessions=[session(PLACE, log), session(ATOMIC, visible)],
        commits=[Commit("group", PLACE, 2, 1.0, 2.0, Outcome.DONE)],
        fetched=[Fetched("group", PLACE, 2, 3.0)],
        deliveries=[delivery(offset, "one", 1.0, 2.0) for offset in range(3)],
        complete_groups={"group": ["plain", "atomic"], "share": ["plain"]},
        logs={PLACE: log, ATOMIC: whole},
        committed_logs={PLACE: list(log), ATOMIC: visible},
        replicas={PLACE: {1: "same", 2: "same"}},
    )


def lose_a_record(histories: Histories) -> None:
    histories.writes.append(written(PLACE, 3, plain(3)))


def repeat_a_record(histories: Histories) -> None:
    histories.logs[PLACE].append(Seen(3, plain(2)))


def swap_two_records(histories: Histories) -> None:
    log = histories.logs[PLACE]
    log[0], log[1] = Seen(0, plain(1)), Seen(1, plain(0))


def show_another_record_at_an_offset(histories: Histories) -> None:
    histories.sessions[0].seen[1] = Seen(1, plain(7))


def acknowledge_another_offset(histories: Histories) -> None:
    histories.writes[0].offset = 2


def invent_a_record(histories: Histories) -> None:
    histories.logs[PLACE].append(Seen(3, plain(9)))


def skip_a_record(histories: Histories) -> None:
    del histories.sessions[0].seen[1]


def skip_the_first_record_after_a_commit(histories: Histories) -> None:
    del histories.sessions[0].seen[0]


def poll_backwards(histories: Histories) -> None:
    histories.sessions[0].seen.append(Seen(1, plain(1)))


def insert_a_record_behind_a_reader(histories: Histories) -> None:
    """An offset that was a gap for a reader has a record later."""
    histories.writes.append(written(ATOMIC, 2, atomic(5, 0)))
    for log in (histories.logs[ATOMIC], histories.committed_logs[ATOMIC]):
        log.insert(2, Seen(2, atomic(5, 0)))
    histories.sessions[1].seen.append(Seen(4, atomic(9, 2)))


def show_an_aborted_record(histories: Histories) -> None:
    histories.sessions[1].seen.append(histories.logs[ATOMIC][2])


def hide_half_of_a_transaction(histories: Histories) -> None:
    histories.committed_logs[ATOMIC] = histories.committed_logs[ATOMIC][:1]


def show_half_of_an_unknown_transaction(histories: Histories) -> None:
    histories.transactions[0].outcome = Outcome.UNKNOWN
    histories.committed_logs[ATOMIC] = histories.committed_logs[ATOMIC][:1]


def forget_a_record_that_a_reader_saw(histories: Histories) -> None:
    del histories.writes[2]
    del histories.logs[PLACE][2]
    del histories.committed_logs[PLACE][2]


def forget_a_commit(histories: Histories) -> None:
    histories.fetched.append(Fetched("group", PLACE, 1, 4.0))


def forget_all_commits(histories: Histories) -> None:
    histories.fetched.append(Fetched("group", PLACE, -1, 4.0))


def start_a_group_too_late(histories: Histories) -> None:
    histories.sessions[0] = session(PLACE, histories.logs[PLACE][1:], start=1)


def keep_a_record_from_the_share_group(histories: Histories) -> None:
    del histories.deliveries[1]


def deliver_an_accepted_record(histories: Histories) -> None:
    histories.deliveries.append(delivery(1, "two", 2.5, 3.0))


def change_a_replica(histories: Histories) -> None:
    histories.replicas[PLACE][2] = "other"


PLANTED = [
    (lose_a_record, Kind.LOST),
    (repeat_a_record, Kind.DUPLICATED),
    (swap_two_records, Kind.REORDERED),
    (show_another_record_at_an_offset, Kind.DIFFERING),
    (acknowledge_another_offset, Kind.DIFFERING),
    (invent_a_record, Kind.INVENTED),
    (skip_a_record, Kind.SKIPPED),
    (skip_the_first_record_after_a_commit, Kind.SKIPPED),
    (poll_backwards, Kind.NOT_MONOTONIC),
    (insert_a_record_behind_a_reader, Kind.SKIPPED),
    (show_an_aborted_record, Kind.ABORTED_SEEN),
    (hide_half_of_a_transaction, Kind.HALF_SEEN),
    (show_half_of_an_unknown_transaction, Kind.HALF_SEEN),
    (forget_a_record_that_a_reader_saw, Kind.LOST),
    (forget_a_commit, Kind.COMMIT_WENT_BACK),
    (forget_all_commits, Kind.COMMIT_WENT_BACK),
    (start_a_group_too_late, Kind.UNREAD),
    (keep_a_record_from_the_share_group, Kind.UNREAD),
    (deliver_an_accepted_record, Kind.ACCEPTED_AGAIN),
    (change_a_replica, Kind.REPLICAS_DIFFER),
]


@pytest.mark.parametrize(("plant", "kind"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED])
def test_a_planted_anomaly_is_found(plant: Callable[[Histories], None], kind: Kind) -> None:
    histories = sound()
    plant(histories)
    assert counts(anomalies(histories))[kind] >= 1


def test_every_kind_of_anomaly_is_planted() -> None:
    assert {kind for _, kind in PLANTED} == set(Kind)


def test_a_sound_history_has_no_anomaly() -> None:
    assert anomalies(sound()) == []


def test_an_unknown_write_may_be_stored_or_not() -> None:
    histories = sound()
    histories.writes += [Write(PLACE, plain(4)), Write(PLACE, plain(5))]
    histories.writes[2].outcome = Outcome.UNKNOWN
    assert anomalies(histories) == []


def test_an_unknown_transaction_may_be_aborted_as_a_whole() -> None:
    histories = sound()
    histories.transactions[0].outcome = Outcome.UNKNOWN
    histories.committed_logs[ATOMIC] = []
    histories.sessions[1].seen.clear()
    assert anomalies(histories) == []


def test_a_commit_without_an_answer_may_arrive_late() -> None:
    histories = sound()
    histories.commits.append(Commit("group", PLACE, 1, 0.0, 0.5, Outcome.UNKNOWN))
    histories.fetched.append(Fetched("group", PLACE, 1, 4.0))
    assert anomalies(histories) == []


def test_a_record_polled_before_its_acceptance_is_no_second_delivery() -> None:
    histories = sound()
    histories.deliveries.append(delivery(1, "two", 1.5, 3.0))
    assert anomalies(histories) == []
