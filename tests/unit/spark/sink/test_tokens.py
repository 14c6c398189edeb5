"""The records of the token topic, as bytes."""

import msgspec

from headrace.protocol.batches import Record, build_batch
from headrace.protocol.control_records import ControlType, control_key
from headrace.spark.sink.tokens import (
    Decision,
    Prepared,
    Token,
    WriterHistory,
    decision_key,
    token_key,
)

WRITER = "query"


def token(task: int, producer: int, epoch: int = 0, writer: str = WRITER) -> bytes:
    record = Record(0, 0, token_key(writer, task), msgspec.json.encode(Token(5)))
    return bytes(
        build_batch([record], producer_id=producer, producer_epoch=epoch, transactional=True)
    )


def decided(number: int, producer: int, writer: str = WRITER) -> bytes:
    decision = Decision(epoch=number, tasks=1, transactions=())
    record = Record(0, 0, decision_key(writer), msgspec.json.encode(decision))
    return bytes(build_batch([record], producer_id=producer, transactional=True))


def marker(producer: int, kind: ControlType = ControlType.COMMIT) -> bytes:
    record = Record(0, 0, control_key(kind), b"\x00\x00\x00\x00\x00\x00")
    return bytes(build_batch([record], producer_id=producer, transactional=True, control=True))


def prepared(task: int, producer: int, epoch: int = 0) -> Prepared:
    return Prepared(task=task, producer_id=producer, producer_epoch=epoch, sequence=1)


def history(*batches: bytes) -> WriterHistory:
    found = WriterHistory(WRITER)
    for batch in batches:
        found.fold(batch)
    return found


def test_a_token_counts_once_its_transaction_is_committed() -> None:
    assert not history(token(3, producer=7)).has(prepared(3, 7))
    assert history(token(3, producer=7), marker(7)).has(prepared(3, 7))


def test_a_token_of_an_aborted_transaction_does_not_count() -> None:
    assert not history(token(3, producer=7), marker(7, ControlType.ABORT)).has(prepared(3, 7))


def test_another_producers_marker_is_ignored() -> None:
    assert not history(token(3, producer=7), marker(8)).has(prepared(3, 7))


def test_another_attempt_of_a_task_is_not_this_one() -> None:
    found = history(token(3, producer=7, epoch=1), marker(7))
    assert found.has(prepared(3, 7, epoch=1))
    assert not found.has(prepared(3, 7, epoch=0))


def test_tokens_of_several_batches_in_one_piece_are_all_seen() -> None:
    found = history(token(0, producer=7) + token(1, producer=8) + marker(8) + marker(7))
    assert found.committed == {(0, 7, 0), (1, 8, 0)}


def test_writers_with_similar_names_are_separate() -> None:
    found = history(token(1, producer=7, writer=f"{WRITER}/2"), marker(7))
    assert found.committed == set()
    assert token_key(f"{WRITER}/epoch", 1) != decision_key(WRITER)


def test_the_last_committed_decision_is_the_one_that_counts() -> None:
    found = history(
        decided(4, producer=7),
        marker(7),
        decided(5, producer=7),
        marker(7),
        decided(6, producer=7),
        marker(7, ControlType.ABORT),
        decided(7, producer=7),
        decided(9, producer=8, writer="another"),
        marker(8),
    )
    assert found.decision is not None
    assert found.decision.epoch == 5


def test_there_may_be_no_decision_yet() -> None:
    assert history(token(1, 7), marker(7)).decision is None
