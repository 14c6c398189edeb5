"""Share sessions (KIP-932): the partitions that a member of a share group takes records from.

A session belongs to one member and one connection. Requests name only changes and increment an
epoch, so that lost or repeated requests are detected. The records of a member are released when
its session ends: by its last request (epoch -1), with its connection, or when it leaves the group.
The number of sessions is bounded; members beyond the limit must wait.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from typing import NamedTuple

from headrace.errors import (
    InvalidRequest,
    InvalidShareSessionEpoch,
    ShareSessionLimitReached,
    ShareSessionNotFound,
)
from headrace.protocol.uuids import Uuid

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
_EPOCH_MAX = (1 << 31) - 1
TARGETS_MAX = 10_000
"""The most partitions of a session: every fetch looks at all of them."""


class SessionKey(NamedTuple):
    """A member of a group."""

    group_id: str
    member_id: str


class Target(NamedTuple):
    """A partition that a session takes records from."""

    topic_id: Uuid
    partition: int


class ShareSession:
    """The partitions that one member has requested so far."""

    __slots__ = ("connection", "epoch", "key", "targets", "unheard")

    def __init__(self, key: SessionKey, connection: Hashable) -> None:
        self.key = key
        self.connection = connection
        self.epoch = 1
        self.targets: dict[Target, None] = {}
        self.unheard: set[Target] = set()  # The next answer includes these in any case.

    def rotated(self, epoch: int) -> list[Target]:
        """Return the partitions in rotation, so that each is served first at times."""
        targets = list(self.targets)
        if not targets:
            return targets
        at = epoch % len(targets)
        return targets[at:] + targets[:at]


class ShareSessions:
    """All sessions of this node."""

    def __init__(self, sessions_max: int) -> None:
        self._sessions_max = sessions_max
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._by_connection: dict[Hashable, dict[SessionKey, None]] = {}
        self._by_group: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._sessions)

    def serves(self, group_id: str) -> bool:
        """Return whether a member of this group has a session."""
        return group_id in self._by_group

    def fetch(
        self,
        key: SessionKey,
        epoch: int,
        wanted: Collection[Target],
        forgotten: Collection[Target],
        connection: Hashable,
        *,
        has_acknowledgements: bool,
    ) -> ShareSession:
        """Return the session of a ShareFetch: a new one, or the next step of the present one."""
        if epoch == INITIAL_EPOCH:
            if has_acknowledgements:
                raise InvalidRequest("a first share fetch cannot acknowledge anything yet")
            return self._open(key, wanted, connection)
        session = self._find(key)
        if epoch == FINAL_EPOCH:
            return session
        if not (wanted or forgotten):
            _step(session, epoch)
            return session
        gone = set(forgotten)
        targets = {target: None for target in session.targets if target not in gone}
        targets.update(dict.fromkeys(wanted))
        _check_count(targets)
        _step(session, epoch)
        session.unheard |= targets.keys() - session.targets.keys()
        session.targets = targets
        return session

    def acknowledge(self, key: SessionKey, epoch: int) -> ShareSession:
        """Return the session of a ShareAcknowledge, which must exist."""
        if epoch == INITIAL_EPOCH:
            raise InvalidShareSessionEpoch("a share session is begun by a fetch")
        session = self._find(key)
        if epoch != FINAL_EPOCH:
            _step(session, epoch)
        return session

    def close(self, key: SessionKey) -> ShareSession | None:
        """End a session; the caller releases the records of its member."""
        session = self._sessions.pop(key, None)
        if session is not None:
            keys = self._by_connection[session.connection]
            del keys[key]
            if not keys:
                del self._by_connection[session.connection]
            self._by_group[key.group_id] -= 1
            if not self._by_group[key.group_id]:
                del self._by_group[key.group_id]
        return session

    def disconnect(self, connection: Hashable) -> list[ShareSession]:
        """End the sessions of a connection that is gone."""
        found = [self.close(key) for key in list(self._by_connection.get(connection, ()))]
        return [session for session in found if session is not None]

    def _open(
        self, key: SessionKey, wanted: Iterable[Target], connection: Hashable
    ) -> ShareSession:
        targets = dict.fromkeys(wanted)
        _check_count(targets)
        self.close(key)
        if len(self._sessions) >= self._sessions_max:
            raise ShareSessionLimitReached(
                f"this broker serves {self._sessions_max} share sessions already "
                "(group.share.max.share.sessions)"
            )
        session = ShareSession(key, connection)
        session.targets = targets
        session.unheard = set(session.targets)
        self._sessions[key] = session
        self._by_connection.setdefault(connection, {})[key] = None
        self._by_group[key.group_id] += 1
        return session

    def _find(self, key: SessionKey) -> ShareSession:
        session = self._sessions.get(key)
        if session is None:
            raise ShareSessionNotFound(
                f"member {key.member_id} of {key.group_id} has no share session here"
            )
        return session


def _check_count(targets: Collection[Target]) -> None:
    if len(targets) > TARGETS_MAX:
        raise InvalidRequest(
            f"a share session is for {TARGETS_MAX} partitions at most, not {len(targets)}; "
            "let more members share them"
        )


def _step(session: ShareSession, epoch: int) -> None:
    if epoch != session.epoch:
        raise InvalidShareSessionEpoch(
            f"the share session of {session.key.member_id} is at epoch {session.epoch}, not {epoch}"
        )
    session.epoch = 1 if epoch == _EPOCH_MAX else epoch + 1
