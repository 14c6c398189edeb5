"""Share sessions: epochs, bounds, and who ends them."""

import pytest

from headrace.errors import (
    InvalidRequest,
    InvalidShareSessionEpoch,
    ShareSessionLimitReached,
    ShareSessionNotFound,
)
from headrace.shares.sessions import TARGETS_MAX, SessionKey, ShareSession, ShareSessions, Target

ADA, BOB = SessionKey("group", "ada"), SessionKey("group", "bob")
FIRST, SECOND = Target(bytes(16), 0), Target(bytes(16), 1)


def fetch(
    sessions: ShareSessions,
    epoch: int,
    *wanted: Target,
    key: SessionKey = ADA,
    forgotten: tuple[Target, ...] = (),
    connection: str = "one",
    has_acknowledgements: bool = False,
) -> ShareSession:
    return sessions.fetch(
        key,
        epoch,
        wanted,
        forgotten,
        connection,
        has_acknowledgements=has_acknowledgements,
    )


def test_a_session_remembers_its_partitions() -> None:
    sessions = ShareSessions(2)
    fetch(sessions, 0, FIRST)
    session = fetch(sessions, 1, SECOND)
    assert list(session.targets) == [FIRST, SECOND]
    session = fetch(sessions, 2, forgotten=(FIRST,))
    assert list(session.targets) == [SECOND]


def test_an_answer_includes_only_new_partitions() -> None:
    sessions = ShareSessions(2)
    session = fetch(sessions, 0, FIRST)
    assert session.unheard == {FIRST}
    session.unheard.clear()
    assert fetch(sessions, 1, FIRST, SECOND).unheard == {SECOND}


def test_partitions_take_turns() -> None:
    session = fetch(ShareSessions(1), 0, FIRST, SECOND)
    assert session.rotated(1) == [SECOND, FIRST]
    assert session.rotated(2) == [FIRST, SECOND]


@pytest.mark.parametrize("epoch", [0, 2, 5])
def test_an_epoch_out_of_turn_is_refused(epoch: int) -> None:
    sessions = ShareSessions(1)
    fetch(sessions, 0, FIRST)
    with pytest.raises(InvalidShareSessionEpoch):
        sessions.acknowledge(ADA, epoch)


def test_both_requests_count_the_same_epoch() -> None:
    sessions = ShareSessions(1)
    fetch(sessions, 0, FIRST)
    sessions.acknowledge(ADA, 1)
    assert fetch(sessions, 2).epoch == 3


def test_epochs_begin_again_after_the_last() -> None:
    sessions = ShareSessions(1)
    fetch(sessions, 0, FIRST).epoch = (1 << 31) - 1
    assert fetch(sessions, (1 << 31) - 1).epoch == 1


def test_a_missing_session_is_an_error() -> None:
    sessions = ShareSessions(1)
    for epoch in (1, -1):
        with pytest.raises(ShareSessionNotFound):
            fetch(sessions, epoch)
        with pytest.raises(ShareSessionNotFound):
            sessions.acknowledge(ADA, epoch)


def test_a_first_request_with_acknowledgements_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        fetch(ShareSessions(1), 0, FIRST, has_acknowledgements=True)


def test_the_number_of_sessions_is_limited() -> None:
    sessions = ShareSessions(1)
    fetch(sessions, 0, FIRST)
    with pytest.raises(ShareSessionLimitReached):
        fetch(sessions, 0, FIRST, key=BOB)
    fetch(sessions, 0, FIRST)  # A session that restarts takes its own place.
    sessions.close(ADA)
    fetch(sessions, 0, FIRST, key=BOB)
    assert len(sessions) == 1


def test_a_session_has_a_bound() -> None:
    sessions = ShareSessions(1)
    many = [Target(bytes(16), index) for index in range(TARGETS_MAX + 1)]
    with pytest.raises(InvalidRequest, match="more members"):
        fetch(sessions, 0, *many)
    fetch(sessions, 0, *many[1:])
    with pytest.raises(InvalidRequest, match="more members"):
        fetch(sessions, 1, many[0])
    assert len(fetch(sessions, 1, many[0], forgotten=(many[1],)).targets) == TARGETS_MAX


def test_sessions_end_with_their_connection() -> None:
    sessions = ShareSessions(3)
    fetch(sessions, 0, FIRST)
    fetch(sessions, 0, FIRST, key=BOB, connection="two")
    assert [session.key for session in sessions.disconnect("one")] == [ADA]
    assert sessions.serves("group")
    assert [session.key for session in sessions.disconnect("two")] == [BOB]
    assert not sessions.serves("group")
    assert sessions.disconnect("one") == []


def test_a_session_moves_with_its_member_to_another_connection() -> None:
    sessions = ShareSessions(3)
    fetch(sessions, 0, FIRST)
    fetch(sessions, 0, FIRST, connection="two")
    assert sessions.disconnect("one") == []
    assert len(sessions) == 1
