"""Chunks in any interleaving, with losses and restarts: whole records, each once."""

from typing import Any

from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.chunks import Joiner, processed_by, split

PLACE = ("t", 0)
Row = tuple[bytes, Any]


@st.composite
def logs(draw: st.DrawFn, *, lossy: bool = False) -> tuple[list[Row], list[bytes]]:
    """Draw a log of several sessions and of ordinary records, and the values in it."""
    queues: list[list[Row]] = []
    values: list[bytes] = []
    for session in range(draw(st.integers(1, 4))):
        queue: list[Row] = []
        for number in range(draw(st.integers(0, 3))):
            value = f"{session}:{number}:".encode().ljust(draw(st.integers(9, 30)), b"x")
            rows = list(split(value, 4, (f"s{session}", number), None))
            if lossy and draw(st.booleans()):
                del rows[draw(st.integers(0, len(rows) - 1))]
            else:
                values.append(value)
            queue += rows
        queues.append(queue)
    small: list[Row] = [(b"small %d" % index, None) for index in range(draw(st.integers(0, 5)))]
    queues.append(small)
    values += [value for value, _ in small]
    log: list[Row] = []
    while any(queues):
        log.append(draw(st.sampled_from([queue for queue in queues if queue])).pop(0))
    return log, values


def messages(log: list[Row], start: int, end: int) -> list[Message]:
    return [
        Message(topic="t", partition=0, offset=offset, value=value, headers=headers)
        for offset, (value, headers) in enumerate(log[start:end], start)
    ]


def read(joiner: Joiner, batch: list[Message]) -> list[bytes]:
    joiner.has_work(batch)
    whole = [joiner.join(message, 0) for message in batch]
    return [message.value() or b"" for message in whole if message is not None]


@given(logs())
def test_every_record_of_any_interleaving_is_returned_once(
    drawn: tuple[list[Row], list[bytes]],
) -> None:
    """PUL-8"""
    log, values = drawn
    joiner = Joiner(10_000, 600_000)
    assert sorted(read(joiner, messages(log, 0, len(log)))) == sorted(values)
    assert joiner.hold(PLACE, len(log)) == len(log)


@given(logs(lossy=True))
def test_a_record_with_a_lost_chunk_is_never_returned_and_all_others_are(
    drawn: tuple[list[Row], list[bytes]],
) -> None:
    """PUL-8"""
    log, values = drawn
    joiner = Joiner(10_000, 600_000)
    assert sorted(read(joiner, messages(log, 0, len(log)))) == sorted(values)


@given(logs(), st.data())
def test_restarts_at_commits_lose_and_repeat_nothing(
    drawn: tuple[list[Row], list[bytes]], data: st.DataObject
) -> None:
    """PUL-8: each restart reads from the committed offset, and skips what was processed."""
    log, values = drawn
    found: list[bytes] = []
    start, end, processed = 0, 0, None
    while end < len(log):
        joiner = Joiner(10_000, 600_000)
        if processed is not None:
            joiner.skip_processed(PLACE, processed)
        end = data.draw(st.integers(end + 1, len(log)))
        found += read(joiner, messages(log, start, end))
        (point,) = joiner.commit_points({PLACE: end})
        start, processed = point.offset, processed_by(point.metadata)
    assert sorted(found) == sorted(values)
