"""Fetch sessions: what is remembered between requests, and when a client must start over."""

import pytest

from headrace.broker.fetch_sessions import (
    EVICTABLE_AFTER_S,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchContext,
    FetchSessions,
)
from headrace.errors import (
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
)
from headrace.protocol.schemas.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

BY_NAME = 12
BY_ID = 13


def request(
    *partitions: int, offset: int = 0, session_id: int = 0, epoch: int = INITIAL_EPOCH
) -> FetchRequest:
    topics = []
    if partitions:
        wanted = [FetchPartition(partition=p, fetch_offset=offset) for p in partitions]
        topics = [FetchTopic(topic="orders", partitions=wanted)]
    return FetchRequest(session_id=session_id, session_epoch=epoch, topics=topics)


def indexes(context: FetchContext) -> list[int]:
    return [target.index for target in context]


def test_a_full_request_opens_a_session() -> None:
    context = FetchSessions(10).context(request(0, 1), BY_NAME, now=0)
    assert context.session_id != 0
    assert not context.is_incremental
    assert indexes(context) == [0, 1]


def test_an_incremental_request_reads_the_partitions_of_the_session() -> None:
    sessions = FetchSessions(10)
    opened = sessions.context(request(0, 1), BY_NAME, now=0)
    context = sessions.context(request(session_id=opened.session_id, epoch=1), BY_NAME, now=1)
    assert context.is_incremental
    assert indexes(context) == [0, 1]


def test_an_incremental_request_moves_positions_and_forgets_partitions() -> None:
    sessions = FetchSessions(10)
    opened = sessions.context(request(0, 1), BY_NAME, now=0)
    change = request(1, 2, offset=7, session_id=opened.session_id, epoch=1)
    change.forgotten_topics_data = [ForgottenTopic(topic="orders", partitions=[0])]
    context = sessions.context(change, BY_NAME, now=1)
    assert [(t.index, t.offset) for t in context] == [(1, 7), (2, 7)]


def test_an_unknown_session_is_refused() -> None:
    with pytest.raises(FetchSessionIdNotFound):
        FetchSessions(10).context(request(session_id=5, epoch=1), BY_NAME, now=0)


def test_a_skipped_epoch_is_refused_and_the_session_stays() -> None:
    sessions = FetchSessions(10)
    opened = sessions.context(request(0), BY_NAME, now=0)
    with pytest.raises(InvalidFetchSessionEpoch):
        sessions.context(request(session_id=opened.session_id, epoch=2), BY_NAME, now=0)
    assert sessions.context(
        request(session_id=opened.session_id, epoch=1), BY_NAME, now=0
    ).is_incremental


def test_a_session_by_name_cannot_continue_by_id() -> None:
    sessions = FetchSessions(10)
    opened = sessions.context(request(0), BY_NAME, now=0)
    with pytest.raises(FetchSessionTopicIdError):
        sessions.context(request(session_id=opened.session_id, epoch=1), BY_ID, now=0)


def test_the_final_epoch_closes_the_session_and_still_reads() -> None:
    sessions = FetchSessions(10)
    opened = sessions.context(request(0), BY_NAME, now=0)
    last = sessions.context(
        request(3, session_id=opened.session_id, epoch=FINAL_EPOCH), BY_NAME, now=0
    )
    assert last.session_id == 0
    assert indexes(last) == [3]
    assert len(sessions) == 0


def test_a_session_without_partitions_ends() -> None:
    sessions = FetchSessions(10)
    opened = sessions.context(request(0), BY_NAME, now=0)
    change = request(session_id=opened.session_id, epoch=1)
    change.forgotten_topics_data = [ForgottenTopic(topic="orders", partitions=[0])]
    assert sessions.context(change, BY_NAME, now=0).session_id == 0
    assert len(sessions) == 0


def test_a_full_cache_gives_no_session_until_the_oldest_is_stale() -> None:
    sessions = FetchSessions(1)
    first = sessions.context(request(0), BY_NAME, now=0)
    assert sessions.context(request(0), BY_NAME, now=1).session_id == 0
    late = sessions.context(request(0), BY_NAME, now=EVICTABLE_AFTER_S + 1)
    assert late.session_id not in (0, first.session_id)
    assert len(sessions) == 1


def test_only_changes_are_sent_again() -> None:
    target = next(iter(FetchSessions(1).context(request(0), BY_NAME, now=0)))
    assert target.must_be_sent(0, 5, 0, size=0)
    assert not target.must_be_sent(0, 5, 0, size=0)
    assert target.must_be_sent(0, 6, 0, size=0)
    assert target.must_be_sent(0, 6, 1, size=0)
    assert target.must_be_sent(0, 6, 1, size=100)


def test_the_end_of_an_error_must_be_sent() -> None:
    target = next(iter(FetchSessions(1).context(request(0), BY_NAME, now=0)))
    target.must_be_sent(0, 5, 0, size=0)
    assert target.must_be_sent(1, -1, -1, size=0)
    assert target.must_be_sent(1, -1, -1, size=0)
    assert target.must_be_sent(0, 5, 0, size=0)


def test_a_served_partition_queues_up_last() -> None:
    context = FetchSessions(1).context(request(0, 1, 2), BY_NAME, now=0)
    assert context.session is not None
    context.session.serve_last(next(iter(context)))
    assert indexes(context) == [1, 2, 0]
