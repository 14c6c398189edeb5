"""A group of the classic protocol: its members agree on a leader, and the leader assigns.

One record per group survives a crash (`GroupMetadata`): generation, protocol, leader, and
each member with its subscription and its assignment. Parked requests, phases of a rebalance and
members of an unfinished generation have no record: a member whose coordinator is gone joins again.

A decision works on a `copy`, which replaces the group when the records are written.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from enum import StrEnum

import msgspec

from headrace.coordination.effects import Effects, Ticket, TimerKey
from headrace.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    NonEmptyGroup,
    RebalanceInProgress,
    UnknownMemberId,
)
from headrace.groups.group import GroupType
from headrace.protocol.codec import DecodeError, read
from headrace.protocol.coordinator_records import CoordinatorRecord, encode_record
from headrace.protocol.schemas.records.consumer_protocol import ConsumerProtocolSubscription
from headrace.protocol.schemas.records.groups import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

CONSUMER_PROTOCOL = "consumer"
NO_STATE_TIME = -1
_VALUE_VERSION = 3

Protocols = tuple[tuple[str, bytes], ...]
"""The protocols that a member can take part in, the best first: names and subscriptions."""


class State(StrEnum):
    """The states of a classic group, as Kafka names them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Member(msgspec.Struct, frozen=True, eq=False):
    """One member, and its requests that wait."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    join_ticket: Ticket = None
    sync_ticket: Ticket = None
    is_new: bool = False

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_known_alive(self) -> bool:
        """Return whether the member is silent because it waits for this coordinator.

        A member without a generation may be gone nevertheless: its client may have given up and
        joined under another id.
        """
        return not self.is_new and (self.join_ticket is not None or self.sync_ticket is not None)

    def metadata_for(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


class ClassicGroup:
    """One classic group; a group with offsets and without members is one, too."""

    __slots__ = (
        "awaiting_join",
        "generation",
        "group_id",
        "initial_delay_ms",
        "initial_remaining_ms",
        "is_initial_rebalance",
        "leader_id",
        "members",
        "new_member_added",
        "pending_join",
        "pending_sync",
        "protocol",
        "protocol_type_or_none",
        "state",
        "state_ms",
        "static_ids",
        "subscribed_topics",
        "supported",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.state_ms = NO_STATE_TIME
        self.generation = 0
        self.protocol_type_or_none: str | None = None
        self.protocol: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self.static_ids: dict[str, str] = {}  # Instance id to member id.
        self.supported: Counter[str] = Counter()  # Protocol name to members that can take part.
        self.pending_join: set[str] = set()  # Assigned ids of members that have not joined yet.
        self.pending_sync: set[str] = set()
        self.awaiting_join = 0
        self.subscribed_topics: frozenset[str] | None = None
        self.is_initial_rebalance = False
        self.new_member_added = False
        self.initial_delay_ms = 0
        self.initial_remaining_ms = 0

    def copy(self) -> "ClassicGroup":
        """The group for a decision to change; members are frozen and shared."""
        draft = copy(self)
        draft.members = self.members.copy()
        draft.static_ids = self.static_ids.copy()
        draft.supported = self.supported.copy()
        draft.pending_join = self.pending_join.copy()
        draft.pending_sync = self.pending_sync.copy()
        return draft

    # The interface of every kind of group (`groups/group.py`).

    @property
    def type(self) -> GroupType:
        return GroupType.CLASSIC

    @property
    def protocol_type(self) -> str:
        return self.protocol_type_or_none or ""

    @property
    def state_name(self) -> str:
        return self.state.value

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, is_transaction: bool
    ) -> None:
        self._check_alive()
        if epoch < 0 and self.state is State.EMPTY:
            return  # A client that manages its partitions itself, or an administrator.
        if epoch >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            if epoch != self.generation:
                raise IllegalGeneration(
                    f"group {self.group_id} is at generation {self.generation}, not {epoch}"
                )
        elif not is_transaction and self.state is not State.EMPTY:
            raise UnknownMemberId(f"group {self.group_id} has members; only they may commit")
        if not is_transaction and self.state is State.COMPLETING_REBALANCE:
            raise RebalanceInProgress(f"group {self.group_id} waits for its assignment")

    def check_fetch(self, member_id: str, epoch: int) -> None:
        if self.state is State.DEAD:
            raise GroupIdNotFound(f"Group {self.group_id} is in dead state.")

    def check_offset_delete(self) -> None:
        self.check_fetch("", -1)
        if self.state is not State.EMPTY and not self.is_of_consumers:
            raise NonEmptyGroup(f"group {self.group_id} has members; its offsets are in use")

    def check_delete(self) -> None:
        self.check_fetch("", -1)
        if self.state is not State.EMPTY:
            raise NonEmptyGroup(f"group {self.group_id} has members")

    def is_subscribed(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.is_of_consumers
        return topic in self.subscribed_topics

    def offsets_expire_from(self, committed_ms: int) -> int | None:
        if self.protocol_type_or_none is None:
            return committed_ms
        if self.state is State.EMPTY:
            return committed_ms if self.state_ms == NO_STATE_TIME else self.state_ms
        knows_topics = self.is_of_consumers and self.subscribed_topics is not None
        return committed_ms if knows_topics and self.state is State.STABLE else None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [encode_record(GroupMetadataKey(group=self.group_id), None)]

    def on_loaded(self, now_ms: int) -> Effects[None]:
        timers: dict[TimerKey, int | None] = {
            session_timer(self, one): one.session_timeout_ms for one in self.members.values()
        }
        if self.members:
            timers["classic.loaded", self.group_id] = 0
        return Effects(timers=timers)

    def tickets(self) -> list[Ticket]:
        tickets = [
            ticket
            for member in self.members.values()
            for ticket in (member.join_ticket, member.sync_ticket)
        ]
        return [ticket for ticket in tickets if ticket is not None]

    # Predicates.

    @property
    def is_of_consumers(self) -> bool:
        return self.protocol_type_or_none == CONSUMER_PROTOCOL

    @property
    def has_everyone_joined(self) -> bool:
        return len(self.members) == self.awaiting_join and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((one.rebalance_timeout_ms for one in self.members.values()), default=0)

    @property
    def may_rebalance(self) -> bool:
        return self.state in (State.STABLE, State.COMPLETING_REBALANCE, State.EMPTY)

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Reject a request of an unknown or replaced member."""
        if instance_id is not None:
            current = self.static_ids.get(instance_id)
            if current is None:
                raise UnknownMemberId(f"group {self.group_id} has no member {instance_id}")
            if current != member_id:
                raise FencedInstanceId(
                    f"another member {current} has taken the instance id {instance_id}"
                )
        if member_id not in self.members:
            raise UnknownMemberId(f"group {self.group_id} has no member {member_id}")

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether all members, including this one, have a common protocol."""
        if self.state is State.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type_or_none:
            return False
        return any(self.supported[name] == len(self.members) for name, _ in protocols)

    def vote(self) -> str:
        """The protocol that most members prefer among the common ones."""
        everyone = len(self.members)
        candidates = {name for name, count in self.supported.items() if count == everyone}
        votes = Counter(
            next(name for name, _ in member.protocols if name in candidates)
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def _check_alive(self) -> None:
        if self.state is State.DEAD:
            raise CoordinatorNotAvailable(f"group {self.group_id} has moved")

    # Members.

    def add(self, member: Member) -> None:
        if not self.members:
            self.protocol_type_or_none = member.protocol_type
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.supported.update(name for name, _ in member.protocols)
        self.awaiting_join += member.join_ticket is not None
        self.pending_join.discard(member.member_id)

    def replace(self, member: Member) -> None:
        """Replace the member with the same id."""
        old = self.members[member.member_id]
        if old.protocols != member.protocols:
            self.supported.subtract(name for name, _ in old.protocols)
            self.supported.update(name for name, _ in member.protocols)
        self.awaiting_join += (member.join_ticket is not None) - (old.join_ticket is not None)
        self.members[member.member_id] = member

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self.supported.subtract(name for name, _ in member.protocols)
            self.awaiting_join -= member.join_ticket is not None
            if member.instance_id is not None:
                self.static_ids.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)

    def rename(self, old_id: str, member_id: str) -> Member:
        """Give a static member that has returned its new id; the old one is fenced from now on."""
        member = msgspec.structs.replace(self.members[old_id], member_id=member_id)
        self.members = {
            member.member_id if key == old_id else key: member if key == old_id else one
            for key, one in self.members.items()
        }
        if self.leader_id == old_id:
            self.leader_id = member_id
        if old_id in self.pending_sync:
            self.pending_sync.remove(old_id)
            self.pending_sync.add(member_id)
        assert member.instance_id is not None
        self.static_ids[member.instance_id] = member_id
        return member

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined, or elect one that has; return whether any has."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].join_ticket is not None:
            return True
        joined = (one for one in self.members.values() if one.join_ticket is not None)
        member = next(joined, None)
        if member is None:
            return False
        self.leader_id = member.member_id
        return True

    # States.

    def become(self, state: State, now_ms: int) -> None:
        assert state in _MAY_FOLLOW[self.state], f"{self.group_id}: {self.state} to {state}"
        self.is_initial_rebalance = self.state is State.EMPTY and state is State.PREPARING_REBALANCE
        self.state = state
        self.state_ms = now_ms

    def begin_generation(self, now_ms: int) -> None:
        self.generation = (self.generation + 1) & 0x7FFFFFFF
        self.protocol = self.vote() if self.members else None
        self.subscribed_topics = self.find_subscribed_topics()
        self.become(State.COMPLETING_REBALANCE if self.members else State.EMPTY, now_ms)
        self.pending_sync.clear()

    def find_subscribed_topics(self) -> frozenset[str] | None:
        """All subscribed topics, if the protocol reveals them."""
        if not self.is_of_consumers or (self.members and self.protocol is None):
            return None
        try:
            return frozenset(
                topic
                for member in self.members.values()
                for topic in subscribed_topics(member.metadata_for(self.protocol))
            )
        except DecodeError:
            return None

    # Records.

    def value(self, now_ms: int, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
        """Return the present record of the group, with these assignments."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader_id,
            current_state_timestamp=now_ms,
            members=[
                MemberMetadata(
                    member_id=one.member_id,
                    group_instance_id=one.instance_id,
                    client_id=one.client_id,
                    client_host=one.client_host,
                    rebalance_timeout=one.rebalance_timeout_ms,
                    session_timeout=one.session_timeout_ms,
                    subscription=one.metadata_for(self.protocol),
                    assignment=assignments.get(one.member_id, b""),
                )
                for one in self.members.values()
            ],
        )

    def record(self, value: GroupMetadataValue) -> CoordinatorRecord:
        return encode_record(GroupMetadataKey(group=self.group_id), value, _VALUE_VERSION)

    def apply(self, value: GroupMetadataValue) -> None:
        """Apply the group's record, in a draft and on replay."""
        written = {one.member_id for one in value.members}
        self.protocol_type_or_none = value.protocol_type or None
        self.generation = value.generation
        self.protocol = value.protocol or None
        for gone in [one for one in self.members if one not in written]:
            self.remove(gone)
        for metadata in value.members:
            self._apply_member(metadata)
        self.leader_id = value.leader or None
        self.state = State.STABLE if value.members else State.EMPTY
        self.state_ms = value.current_state_timestamp
        self.subscribed_topics = self.find_subscribed_topics()

    def _apply_member(self, metadata: MemberMetadata) -> None:
        known = self.members.get(metadata.member_id)
        if known is not None:
            self.replace(
                msgspec.structs.replace(known, assignment=metadata.assignment, sync_ticket=None)
            )
            return
        rebalance_ms = metadata.rebalance_timeout
        self.add(
            Member(
                metadata.member_id,
                metadata.group_instance_id,
                metadata.client_id,
                metadata.client_host,
                metadata.session_timeout if rebalance_ms == -1 else rebalance_ms,
                metadata.session_timeout,
                self.protocol_type,
                ((self.protocol or "", metadata.subscription),),
                metadata.assignment,
            )
        )


def session_timer(group: ClassicGroup, member: Member) -> TimerKey:
    return ("classic.session", group.group_id, member.member_id)


_MAY_FOLLOW = {
    State.EMPTY: {State.PREPARING_REBALANCE, State.DEAD},
    State.PREPARING_REBALANCE: {State.COMPLETING_REBALANCE, State.EMPTY, State.DEAD},
    State.COMPLETING_REBALANCE: {State.STABLE, State.PREPARING_REBALANCE, State.DEAD},
    State.STABLE: {State.PREPARING_REBALANCE, State.DEAD},
    State.DEAD: {State.DEAD},
}


def subscribed_topics(metadata: bytes) -> Iterable[str]:
    """The topics in a consumer's subscription; newer versions only add fields at its end."""
    if len(metadata) < 2:
        raise DecodeError("a subscription has no version")
    return read(ConsumerProtocolSubscription, 0, metadata, 2)[0].topics
