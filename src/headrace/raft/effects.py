"""The values that go into and come out of a quorum: moments, requests, replies and effects."""

from typing import NamedTuple

import msgspec

from headrace.protocol.message import Message
from headrace.raft.messages import Leadership
from headrace.raft.quorum_state import QuorumState
from headrace.raft.replicas import Endpoint, Node, ReplicaKey, Voter


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """The settings `controller.quorum.*`, with Kafka's defaults."""

    election_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_bytes_max: int = 1 << 20
    snapshot_bytes_max: int = 1 << 20


class LocalReplica(msgspec.Struct, frozen=True, kw_only=True):
    """This replica: its key, its cluster, and the addresses of its controller listeners."""

    key: ReplicaKey
    cluster_id: str
    listener: str
    """The name of the listener by which the replicas of the quorum reach each other."""
    endpoints: tuple[Endpoint, ...] = ()
    bootstrap: tuple[Node, ...] = ()
    """`controller.quorum.bootstrap.servers`, from which a replica without a leader fetches."""
    is_controller: bool = True
    kraft_versions: tuple[int, int] = (0, 1)
    joins_automatically: bool = False

    @property
    def voter(self) -> Voter:
        return Voter(self.key, self.endpoints, self.kraft_versions)


class Now(NamedTuple):
    """A moment by two clocks: `ms` never goes back and is for timers; `wall_ms` is stored."""

    ms: int
    wall_ms: int


class Request(NamedTuple):
    """A request to a peer; its answer is passed to `answered` with the token."""

    token: int
    to: Node
    message: Message


class Reply(NamedTuple):
    """The answer to a request that `receive` got with this token."""

    token: int
    message: Message


class Sync(NamedTuple):
    """The log is to be synced up to an offset; a truncation in the meantime makes it stale."""

    end_offset: int
    truncations: int


class Output(msgspec.Struct):
    """The effects of calls."""

    state: QuorumState | None = None
    replies: list[Reply] = []
    requests: list[Request] = []
    sync: Sync | None = None
    leadership: Leadership | None = None
    """Set when the epoch or its leader has changed."""
    high_watermark: int | None = None
    """Set when more records are committed."""
