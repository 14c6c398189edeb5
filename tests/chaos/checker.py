"""Finds anomalies in histories: records and offsets that break a promise of Kafka.

`anomalies` is a pure function. It compares each history with the logs that were read after the
storm, and the histories with each other.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum

import msgspec

from tests.chaos.histories import (
    Delivery,
    End,
    Histories,
    Outcome,
    Place,
    Seen,
    Session,
    Transaction,
    Value,
)


class Kind(Enum):
    """The promises that a history may break."""

    LOST = "acknowledged records lost"
    DUPLICATED = "records duplicated"
    REORDERED = "records reordered"
    DIFFERING = "differing contents at one offset"
    INVENTED = "records without a producer"
    SKIPPED = "records skipped by polls"
    NOT_MONOTONIC = "polls not monotonic"
    ABORTED_SEEN = "aborted records seen by read_committed"
    HALF_SEEN = "transactions half visible"
    COMMIT_WENT_BACK = "committed offsets that went back"
    UNREAD = "records that a group never received"
    ACCEPTED_AGAIN = "share records delivered after acceptance"
    REPLICAS_DIFFER = "replicas with different bytes"


class Anomaly(msgspec.Struct, frozen=True):
    """One broken promise, with an example for people."""

    kind: Kind
    text: str


def anomalies(histories: Histories) -> list[Anomaly]:
    """Return all anomalies."""
    return [
        *_of_logs(histories),
        *_of_contents(histories),
        *_of_sessions(histories),
        *_of_transactions(histories),
        *_of_commits(histories),
        *_of_groups(histories),
        *_of_deliveries(histories),
        *_of_replicas(histories),
    ]


def counts(found: Iterable[Anomaly]) -> dict[Kind, int]:
    """Return the number of anomalies of every kind, also of those without any."""
    numbers = dict.fromkeys(Kind, 0)
    for one in found:
        numbers[one.kind] += 1
    return numbers


def _of_logs(histories: Histories) -> Iterator[Anomaly]:
    """Compare the records that were sent with the logs."""
    sent = {(write.place, write.value) for write in histories.writes}
    for place, log in histories.logs.items():
        offsets: dict[Value, int] = {}
        last: dict[str, Seen] = {}
        for seen in log:
            value = seen.value
            if (place, value) not in sent:
                yield Anomaly(Kind.INVENTED, f"{_at(place, seen.offset)}: {value}")
            if value in offsets:
                yield Anomaly(
                    Kind.DUPLICATED, f"{_at(place, seen.offset)}: {value}, {offsets[value]} too"
                )
                continue
            offsets[value] = seen.offset
            before = last.get(value.writer)
            if before is not None and before.value.number > value.number:
                yield Anomaly(
                    Kind.REORDERED, f"{_at(place, seen.offset)}: {value} after {before.value}"
                )
            last[value.writer] = seen
        for write in histories.writes:
            is_expected = write.place == place and write.outcome is Outcome.DONE
            if is_expected and write.value not in offsets:
                yield Anomaly(Kind.LOST, f"{_at(place, write.offset)}: {write.value}")


def _of_contents(histories: Histories) -> Iterator[Anomaly]:
    """Every observation of an offset must show the same record."""
    contents: dict[tuple[Place, int], Value] = {}
    for place, log in histories.logs.items():
        contents.update({(place, seen.offset): seen.value for seen in log})
    for who, place, seen in _observations(histories):
        expected = contents.setdefault((place, seen.offset), seen.value)
        if expected != seen.value:
            yield Anomaly(
                Kind.DIFFERING, f"{_at(place, seen.offset)}: {expected}, but {seen.value} for {who}"
            )


def _observations(histories: Histories) -> Iterator[tuple[str, Place, Seen]]:
    for write in histories.writes:
        if write.outcome is Outcome.DONE and write.offset is not None:
            yield write.value.writer, write.place, Seen(write.offset, write.value)
    for session in histories.sessions:
        for seen in session.seen:
            yield session.reader, session.place, seen
    for place, log in histories.committed_logs.items():
        for seen in log:
            yield "read_committed", place, seen
    for one in histories.deliveries:
        yield one.member, one.place, Seen(one.offset, one.value)


def _of_sessions(histories: Histories) -> Iterator[Anomaly]:
    """A reader must see every record between two that it has seen, and each one once."""
    for session in histories.sessions:
        logs = histories.committed_logs if session.is_committed else histories.logs
        log = logs.get(session.place)
        visible = [] if log is None else [seen.offset for seen in log]
        yield from _of_session(session, visible)


def _of_session(session: Session, visible: list[int]) -> Iterator[Anomaly]:
    if not session.seen:
        return
    offsets = [seen.offset for seen in session.seen]
    expected = session.start
    for offset in offsets:
        if expected >= 0 and offset < expected:
            yield Anomaly(
                Kind.NOT_MONOTONIC,
                f"{_at(session.place, offset)} after {expected - 1} for {session.reader}",
            )
        expected = offset + 1
    first = session.start if session.start >= 0 else offsets[0]
    missed = [offset for offset in visible if first <= offset <= max(offsets)]
    received = set(offsets)
    for offset in missed:
        if offset not in received:
            yield Anomaly(Kind.SKIPPED, f"{_at(session.place, offset)} by {session.reader}")


def _of_transactions(histories: Histories) -> Iterator[Anomaly]:
    """Transactions are visible as a whole, or not at all."""
    ends = {(one.writer, one.number): one for one in histories.transactions}
    visible: dict[tuple[str, int], set[tuple[Place, Value]]] = defaultdict(set)
    for place, log in histories.committed_logs.items():
        for seen in log:
            visible[seen.value.writer, seen.value.transaction].add((place, seen.value))
    for who, place, seen in _committed_reads(histories):
        one = ends.get((seen.value.writer, seen.value.transaction))
        if one is not None and _is_aborted(one):
            yield Anomaly(Kind.ABORTED_SEEN, f"{_at(place, seen.offset)}: {seen.value} for {who}")
    if not histories.committed_logs:
        return
    written: dict[tuple[str, int], set[tuple[Place, Value]]] = defaultdict(set)
    for write in histories.writes:
        if write.value.transaction >= 0 and write.outcome is Outcome.DONE:
            written[write.value.writer, write.value.transaction].add((write.place, write.value))
    for key, one in ends.items():
        missing = written[key] - visible[key]
        must_show = one.end is End.COMMIT and one.outcome is Outcome.DONE
        if missing and (must_show or visible[key]):
            count = f"{len(missing)} of {len(written[key])} records missing"
            yield Anomaly(Kind.HALF_SEEN, f"transaction {one.number} of {one.writer}: {count}")
    by_offset = {
        (place, seen.offset) for place, log in histories.committed_logs.items() for seen in log
    }
    for who, place, seen in _committed_reads(histories):
        if place in histories.committed_logs and (place, seen.offset) not in by_offset:
            yield Anomaly(Kind.LOST, f"{_at(place, seen.offset)}: {seen.value}, seen by {who}")


def _committed_reads(histories: Histories) -> Iterator[tuple[str, Place, Seen]]:
    for place, log in histories.committed_logs.items():
        for seen in log:
            yield "the last reader", place, seen
    for session in histories.sessions:
        if session.is_committed:
            for seen in session.seen:
                yield session.reader, session.place, seen


def _is_aborted(one: Transaction) -> bool:
    # A producer that wanted to abort never sent a commit, whatever the answers were.
    return one.end is End.ABORT or one.outcome is Outcome.REFUSED


def _of_commits(histories: Histories) -> Iterator[Anomaly]:
    """A committed offset that was confirmed is read by everybody who asks later."""
    for fetched in histories.fetched:
        of_place = [
            one
            for one in histories.commits
            if one.group == fetched.group and one.place == fetched.place
        ]
        confirmed = [
            one.offset
            for one in of_place
            if one.outcome is Outcome.DONE and one.ended <= fetched.began
        ]
        # A commit without an answer may arrive late.
        late = [one.offset for one in of_place if one.outcome is Outcome.UNKNOWN]
        highest = max(confirmed, default=-1)
        if fetched.offset < highest and fetched.offset not in late:
            yield Anomaly(
                Kind.COMMIT_WENT_BACK,
                f"{_at(fetched.place, fetched.offset)} after {highest} of {fetched.group}",
            )


def unread(histories: Histories, group: str) -> list[tuple[Place, Seen]]:
    """Return the visible records of a group's topics that no member has received."""
    received: dict[Place, set[int]] = defaultdict(set)
    for session in list(histories.sessions):
        if session.group == group:
            received[session.place].update(seen.offset for seen in list(session.seen))
    for one in list(histories.deliveries):
        if one.group == group:
            received[one.place].add(one.offset)
    return [
        (place, seen)
        for place, log in histories.committed_logs.items()
        if place[0] in histories.complete_groups[group]
        for seen in log
        if seen.offset not in received[place]
    ]


def _of_groups(histories: Histories) -> Iterator[Anomaly]:
    """A group that commits what it has processed receives every record at least once."""
    for group in histories.complete_groups:
        for place, seen in unread(histories, group):
            yield Anomaly(Kind.UNREAD, f"{_at(place, seen.offset)}: {seen.value} by {group}")


def _of_deliveries(histories: Histories) -> Iterator[Anomaly]:
    """A share record is not delivered again once its acceptance was confirmed."""
    accepted: dict[tuple[str, Place, int], Delivery] = {}
    for one in histories.deliveries:
        if one.outcome is Outcome.DONE:
            key = one.group, one.place, one.offset
            if key not in accepted or one.accepted < accepted[key].accepted:
                accepted[key] = one
    for one in histories.deliveries:
        earlier = accepted.get((one.group, one.place, one.offset))
        if earlier is not None and one is not earlier and one.polled > earlier.accepted:
            yield Anomaly(
                Kind.ACCEPTED_AGAIN,
                f"{_at(one.place, one.offset)} to {one.member}, "
                f"{one.polled - earlier.accepted:.2f} s after its acceptance by {earlier.member}",
            )


def _of_replicas(histories: Histories) -> Iterator[Anomaly]:
    for place, digests in histories.replicas.items():
        if len(set(digests.values())) > 1:
            yield Anomaly(Kind.REPLICAS_DIFFER, f"{place[0]}-{place[1]}: {digests}")


def _at(place: Place, offset: int | None) -> str:
    return f"{place[0]}-{place[1]} offset {offset}"
