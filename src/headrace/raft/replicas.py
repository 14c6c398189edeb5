"""Replicas of the metadata log: keys, endpoints, and the sets of voters over time.

A voter set counts from the moment its record is in the log, committed or not (KIP-853). A truncated
log therefore returns to the set before. With kraft.version 0 the set comes from the configuration,
and directories of voters are unknown.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from headrace.protocol.message import Message
from headrace.protocol.schemas.records import control
from headrace.protocol.uuids import ZERO, Uuid

STATIC_VOTERS = 0
DYNAMIC_VOTERS = 1
"""The kraft.version from which voters are in the log and can change."""


class ReplicaKey(NamedTuple):
    """A node and the directory of its metadata log; `ZERO` is an unknown directory."""

    id: int
    directory_id: Uuid = ZERO


class Endpoint(msgspec.Struct, frozen=True):
    name: str
    host: str
    port: int


class Node(NamedTuple):
    """The address of a peer; bootstrap servers have negative ids."""

    id: int
    host: str
    port: int


class Voter(msgspec.Struct, frozen=True):
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    kraft_versions: tuple[int, int] = (0, 1)
    """The first and last kraft.version that the voter supports."""

    def matches(self, key: ReplicaKey) -> bool:
        """Return whether a replica is this voter; a voter of an unknown directory matches any."""
        return self.key.id == key.id and self.key.directory_id in (ZERO, key.directory_id)

    def node(self, listener: str) -> Node | None:
        """Return the address on a listener."""
        for endpoint in self.endpoints:
            if endpoint.name == listener:
                return Node(self.key.id, endpoint.host, endpoint.port)
        return None

    def supports(self, kraft_version: int) -> bool:
        return self.kraft_versions[0] <= kraft_version <= self.kraft_versions[1]


class VoterSet(msgspec.Struct, frozen=True):
    voters: tuple[Voter, ...] = ()

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> "VoterSet":
        return cls(tuple(sorted(voters, key=lambda voter: voter.key.id)))

    @classmethod
    def of_record(cls, record: control.VotersRecord) -> "VoterSet":
        return cls.of(
            Voter(
                ReplicaKey(one.voter_id, one.voter_directory_id),
                tuple(Endpoint(at.name, at.host, at.port) for at in one.endpoints),
                (
                    one.kraft_version_feature.min_supported_version,
                    one.kraft_version_feature.max_supported_version,
                ),
            )
            for one in record.voters
        )

    def record(self) -> control.VotersRecord:
        return control.VotersRecord(
            0,
            [
                control.VotersRecordVoter(
                    one.key.id,
                    one.key.directory_id,
                    [control.Endpoint(at.name, at.host, at.port) for at in one.endpoints],
                    control.KRaftVersionFeature(*one.kraft_versions),
                )
                for one in self.voters
            ],
        )

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(voter.key.id for voter in self.voters)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def find(self, voter_id: int) -> Voter | None:
        return next((voter for voter in self.voters if voter.key.id == voter_id), None)

    def has(self, key: ReplicaKey) -> bool:
        return any(voter.matches(key) for voter in self.voters)

    def is_only(self, key: ReplicaKey) -> bool:
        return len(self.voters) == 1 and self.voters[0].matches(key)

    def with_voter(self, voter: Voter) -> "VoterSet":
        """Return the set with a voter added, or in the place of the one with its id."""
        return VoterSet.of([*(one for one in self.voters if one.key.id != voter.key.id), voter])

    def without(self, key: ReplicaKey) -> "VoterSet":
        return VoterSet(tuple(voter for voter in self.voters if not voter.matches(key)))


class _Entry(NamedTuple):
    offset: int
    kraft_version: int
    voters: VoterSet


class VoterHistory:
    """The voter sets and kraft.versions of a log, by the offsets of their records."""

    def __init__(self, voters: VoterSet, kraft_version: int = STATIC_VOTERS) -> None:
        """`voters` are those of the configuration, or of the snapshot that formatting wrote."""
        self._entries = [_Entry(-1, kraft_version, voters)]

    @property
    def voters(self) -> VoterSet:
        return self._entries[-1].voters

    @property
    def kraft_version(self) -> int:
        return self._entries[-1].kraft_version

    @property
    def is_dynamic(self) -> bool:
        return self.kraft_version >= DYNAMIC_VOTERS

    @property
    def offset(self) -> int:
        """The offset of the newest set; -1 for one that is not in the log."""
        return self._entries[-1].offset

    def at(self, end_offset: int) -> _Entry:
        """Return the set of a log that ends at an offset, as a snapshot there records it."""
        return next(one for one in reversed(self._entries) if one.offset < end_offset)

    def append(self, offset: int, record: Message) -> None:
        """Follow a record of the log; all but voters and kraft.versions are ignored."""
        newest = self._entries[-1]
        if isinstance(record, control.KRaftVersionRecord):
            self._entries.append(_Entry(offset, record.kraft_version, newest.voters))
        elif isinstance(record, control.VotersRecord):
            voters = VoterSet.of_record(record)
            self._entries.append(_Entry(offset, newest.kraft_version, voters))

    def truncate(self, end_offset: int) -> None:
        """Forget the sets of records that the log no longer has."""
        self._entries = [one for one in self._entries if one.offset < end_offset]

    def restart_at(self, end_offset: int, records: Iterable[Message]) -> None:
        """Replace the history by the records of a snapshot that ends at an offset."""
        self._entries = [self._entries[0]._replace(offset=-1)]
        for record in records:
            self.append(end_offset - 1, record)
