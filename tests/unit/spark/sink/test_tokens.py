"""What the token topic says, by its bytes."""

import msgspec

from headrace.protocol.batches import Record, build_batch
from headrace.protocol.control_records import ControlType, control_key
from headrace.spark.sink.tokens import (
    CommittedTasks,
    Decision,
    Token,
    decision_key,
    last_decision,
    token_key,
)

WRITER = "query"


def token(offset: int, task: int, epoch: int, producer: int, writer: str = WRITER) -> bytes:
    record = Record(offset, 0, token_key(writer, task), msgspec.json.encode(Token(epoch)))
    return bytes(build_batch([record], producer_id=producer, transactional=True))


def marker(offset: int, producer: int, kind: ControlType = ControlType.COMMIT) -> bytes:
    record = Record(offset, 0, control_key(kind), b"\x00\x00\x00\x00\x00\x00")
    return bytes(build_batch([record], producer_id=producer, transactional=True, control=True))


def decided(offset: int, epoch: int, writer: str = WRITER) -> bytes:
    decision = Decision(epoch=epoch, tasks=1, transactions=())
    return bytes(
        build_batch([Record(offset, 0, decision_key(writer), msgspec.json.encode(decision))])
    )


def committed(*batches: bytes, epoch: int = 5) -> set[int]:
    tasks = CommittedTasks(WRITER, epoch)
    tasks.fold(b"".join(batches))
    return tasks.tasks


def test_a_token_counts_once_its_transaction_is_committed() -> None:
    assert committed(token(0, task=3, epoch=5, producer=7)) == set()
    assert committed(token(0, task=3, epoch=5, producer=7), marker(1, producer=7)) == {3}


def test_a_token_of_an_aborted_transaction_does_not_count() -> None:
    written = token(0, task=3, epoch=5, producer=7)
    assert committed(written, marker(1, 7, ControlType.ABORT)) == set()


def test_another_producers_marker_says_nothing() -> None:
    assert committed(token(0, task=3, epoch=5, producer=7), marker(1, producer=8)) == set()


def test_markers_may_come_in_a_later_piece_than_their_tokens() -> None:
    tasks = CommittedTasks(WRITER, 5)
    tasks.fold(token(0, task=3, epoch=5, producer=7))
    tasks.fold(marker(1, producer=7))
    assert tasks.tasks == {3}


def test_only_the_batch_in_question_counts() -> None:
    assert committed(token(0, 3, epoch=4, producer=7), marker(1, 7)) == set()


def test_writers_with_similar_names_do_not_meet() -> None:
    other = token(0, task=1, epoch=5, producer=7, writer=f"{WRITER}/2")
    assert committed(other, marker(1, 7)) == set()
    assert token_key(f"{WRITER}/epoch", 1) != decision_key(WRITER)


def test_the_last_decision_is_the_one_that_counts() -> None:
    log = decided(0, epoch=4) + decided(1, epoch=5) + decided(2, epoch=9, writer="another")
    found = last_decision(log, WRITER)
    assert found is not None
    assert found.epoch == 5


def test_there_may_be_no_decision_yet() -> None:
    assert last_decision(token(0, 1, 5, 7) + marker(1, 7), WRITER) is None
