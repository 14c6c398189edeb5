"""The classic group protocol: join, sync, heartbeat, leave, as pure decisions.

A rebalance has two phases. In the first all members join, within the longest rebalance timeout; in
the second the leader, a member, brings the assignments, and each member fetches its own with
SyncGroup. A new group waits a little for more members before the first phase ends. The
generation counts the rebalances, and requests of an older one are rejected.

Responses and their timing follow Kafka's coordinator (KIP-62, KIP-134, KIP-345 static members,
KIP-394 member ids). A decision changes a copy of the group, which replaces the group when the
records are written; a refused write changes nothing.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headrace.coordination.effects import Effects, Ticket, TimerKey
from headrace.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from headrace.groups.classic.group import ClassicGroup, Member, Protocols, State, session_timer
from headrace.protocol.message import Message
from headrace.protocol.schemas.join_group import JoinGroupResponse, JoinGroupResponseMember
from headrace.protocol.schemas.leave_group import MemberResponse
from headrace.protocol.schemas.records.groups import GroupMetadataKey, GroupMetadataValue
from headrace.protocol.schemas.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from headrace.groups.state import GroupsState
    from headrace.protocol.schemas.leave_group import MemberIdentity
    from headrace.protocol.schemas.sync_group import SyncGroupRequest

NEW_MEMBER_TIMEOUT_MS = 5 * 60_000
"""The maximum wait for a member's very first generation before its client counts as gone."""

NOBODY = ""


class Joining(NamedTuple):
    """A JoinGroup request, with the facts of its connection."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    protocol_type: str
    protocols: Protocols
    session_timeout_ms: int
    rebalance_timeout_ms: int
    new_id: str  # Unique; makes up the id of a member that has none.
    needs_known_id: bool  # From v4 on a new member first gets its id.
    can_skip_assignment: bool  # From v9 on a returning leader can learn that nothing changed.
    may_describe: Callable[[str], bool] | None = None  # None if it may see all topics.


# Joining.


def join(
    shard: "GroupsState", known: ClassicGroup | None, joining: Joining, ticket: Ticket, now_ms: int
) -> Effects[JoinGroupResponse]:
    """Decide on a JoinGroup: the member usually waits until all others have joined."""
    is_new = joining.member_id == NOBODY
    if known is None and not is_new:
        return refuse_join(joining.member_id, UnknownMemberId())
    group = known or ClassicGroup(joining.group_id)
    if not _has_room_for(group, joining.member_id, shard.settings().group_max_size):
        step = _Step(shard, group, now_ms)
        step.group.remove(joining.member_id)
        return step.replying(refused_join(NOBODY, GroupMaxSizeReached()))
    if group.state is State.DEAD:
        return refuse_join(joining.member_id, CoordinatorNotAvailable())
    if not group.supports(joining.protocol_type, joining.protocols):
        return refuse_join(joining.member_id, InconsistentGroupProtocol())
    if is_new:
        return _join_new(_Step(shard, group, now_ms), joining, ticket)
    if joining.member_id in group.pending_join:
        return _add(_Step(shard, group, now_ms), joining, joining.member_id, ticket)
    return _join_again(shard, group, joining, ticket, now_ms)


def refuse_join(member_id: str, error: KafkaError) -> Effects[JoinGroupResponse]:
    return Effects(reply=refused_join(member_id, error))


def refused_join(member_id: str, error: KafkaError) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=error.code, generation_id=-1, member_id=member_id, protocol_name=None
    )


def _has_room_for(group: ClassicGroup, member_id: str, size_max: int) -> bool:
    match group.state:
        case State.EMPTY | State.DEAD:
            return True
        case State.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            has_joined = member is not None and member.join_ticket is not None
            return has_joined or group.awaiting_join < size_max
    return member_id in group.members or len(group.members) < size_max


def _join_new(step: "_Step", joining: Joining, ticket: Ticket) -> Effects[JoinGroupResponse]:
    group = step.group
    if joining.instance_id is not None:
        new_id = f"{joining.instance_id}-{joining.new_id}"
        old_id = group.static_ids.get(joining.instance_id)
        if old_id is not None:
            return _replace_static(step, joining, old_id, new_id, ticket)
        return _add(step, joining, new_id, ticket)
    new_id = f"{joining.client_id}-{joining.new_id}"
    if not joining.needs_known_id:
        return _add(step, joining, new_id, ticket)
    # A client that retries must not leave a member behind each time (KIP-394).
    group.pending_join.add(new_id)
    step.effects.timers["classic.session", group.group_id, new_id] = joining.session_timeout_ms
    return step.replying(refused_join(new_id, MemberIdRequired()))


def _add(
    step: "_Step", joining: Joining, member_id: str, ticket: Ticket
) -> Effects[JoinGroupResponse]:
    group = step.group
    member = Member(
        member_id,
        joining.instance_id,
        joining.client_id,
        joining.client_host,
        joining.rebalance_timeout_ms,
        joining.session_timeout_ms,
        joining.protocol_type,
        joining.protocols,
        join_ticket=ticket,
        is_new=True,
    )
    if group.state is State.PREPARING_REBALANCE and group.is_initial_rebalance:
        group.new_member_added = True
    group.add(member)
    step.restart_session(member, NEW_MEMBER_TIMEOUT_MS)
    step.rebalance_or_complete()
    return step.effects


def _join_again(
    shard: "GroupsState", group: ClassicGroup, joining: Joining, ticket: Ticket, now_ms: int
) -> Effects[JoinGroupResponse]:
    try:
        group.check_member(joining.member_id, joining.instance_id)
    except (UnknownMemberId, FencedInstanceId) as error:
        return refuse_join(joining.member_id, error)
    member = group.members[joining.member_id]
    is_same = member.protocols == joining.protocols
    match group.state:
        case State.COMPLETING_REBALANCE if is_same:
            return Effects(reply=_joined(group, member))  # The member has missed this response.
        case State.STABLE if is_same and member.member_id != group.leader_id:
            return Effects(reply=_joined(group, member))
        case State.EMPTY:
            return refuse_join(joining.member_id, UnknownMemberId())
    step = _Step(shard, group, now_ms)
    step.group.replace(_rejoining(member, joining, ticket))
    step.rebalance_or_complete()
    return step.effects


def _rejoining(member: Member, joining: Joining, ticket: Ticket) -> Member:
    return msgspec.structs.replace(
        member,
        protocols=joining.protocols,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        session_timeout_ms=joining.session_timeout_ms,
        join_ticket=ticket,
    )


def _joined(
    group: ClassicGroup, member: Member, *, leader: str | None = None, skip: bool = False
) -> JoinGroupResponse:
    """The response that ends the first phase; only the leader's lists the members."""
    is_leader = member.member_id == group.leader_id and leader is None
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type_or_none,
        protocol_name=group.protocol,
        leader=leader or group.leader_id or NOBODY,
        skip_assignment=skip,
        member_id=member.member_id,
        members=_all_members(group) if is_leader else [],
    )


def _all_members(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(one.member_id, one.instance_id, one.metadata_for(group.protocol))
        for one in group.members.values()
    ]


def _replace_static(
    step: "_Step", joining: Joining, old_id: str, new_id: str, ticket: Ticket
) -> Effects[JoinGroupResponse]:
    """Return a static member that lost its id to its place, under a new id.

    In a stable group its return affects the others only if it changes the protocol; otherwise it
    gets its old assignment back without a rebalance.
    """
    group = step.group
    old_leader = group.leader_id
    old = step.release(group.members[old_id], FencedInstanceId(), old_id)
    step.effects.timers[session_timer(group, old)] = None
    member = group.rename(old_id, new_id)
    step.restart_session(member)
    group.replace(_rejoining(member, joining, ticket))
    match group.state:
        case State.STABLE if group.vote() == group.protocol:
            step.return_without_rebalance(
                group.members[new_id], old_leader, can_skip=joining.can_skip_assignment
            )
        case State.STABLE:
            step.rebalance_or_complete()
        case State.COMPLETING_REBALANCE:
            step.prepare_rebalance()
        case _:
            step.complete_join_if_all_are_there()
    return step.effects


# Syncing.


def sync(
    shard: "GroupsState",
    group: ClassicGroup,
    request: "SyncGroupRequest",
    ticket: Ticket,
    now_ms: int,
) -> Effects[SyncGroupResponse]:
    """Decide on a SyncGroup: members request their assignment, the leader sends all of them."""
    _check_sync(group, request)
    match group.state:
        case State.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"group {group.group_id} is rebalancing")
        case State.STABLE if request.member_id not in group.pending_sync:
            return Effects(reply=_assignment(group, group.members[request.member_id]))
    step = _Step(shard, group, now_ms)
    step.end_pending_sync(request.member_id)
    member = step.group.members[request.member_id]
    if group.state is State.STABLE:
        return step.replying(_assignment(group, member))
    step.group.replace(msgspec.structs.replace(member, sync_ticket=ticket))
    if member.member_id == group.leader_id:
        step.assign({one.member_id: one.assignment for one in request.assignments})
    return step.effects


def _check_sync(group: ClassicGroup, request: "SyncGroupRequest") -> None:
    if group.state is State.EMPTY:
        raise UnknownMemberId(f"group {group.group_id} has no members")
    if group.state is State.DEAD:
        raise CoordinatorNotAvailable(f"group {group.group_id} has moved")
    group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise IllegalGeneration(
            f"group {group.group_id} is at generation {group.generation}, "
            f"not {request.generation_id}"
        )
    for given, actual in (
        (request.protocol_type, group.protocol_type_or_none),
        (request.protocol_name, group.protocol),
    ):
        if given is not None and given != actual:
            raise InconsistentGroupProtocol(f"group {group.group_id} uses {actual}, not {given}")


def _assignment(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type_or_none,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )


# Heartbeats and leaving.


def heartbeat(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int
) -> Effects[int]:
    """Decide on a heartbeat; the reply is an error code, which may ask the member to rejoin."""
    if group.state is State.DEAD:
        raise CoordinatorNotAvailable(f"group {group.group_id} has moved")
    group.check_member(member_id, instance_id)
    if generation != group.generation:
        raise IllegalGeneration(
            f"group {group.group_id} is at generation {group.generation}, not {generation}"
        )
    if group.state is State.EMPTY:
        raise UnknownMemberId(f"group {group.group_id} has no members")
    code = RebalanceInProgress.code if group.state is State.PREPARING_REBALANCE else 0
    session_ms = group.members[member_id].session_timeout_ms
    return Effects(reply=code, timers={("classic.session", group.group_id, member_id): session_ms})


def keep_alive_by_commit(
    shard: "GroupsState", group_id: str, member_id: str
) -> tuple[TimerKey, int] | None:
    """The session that a commit extends, as a heartbeat does, and for how long."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return None
    if group.state not in (State.STABLE, State.PREPARING_REBALANCE):
        return None
    member = group.members.get(member_id)
    return None if member is None else (session_timer(group, member), member.session_timeout_ms)


def leave(
    shard: "GroupsState", group: ClassicGroup, identities: "list[MemberIdentity]", now_ms: int
) -> Effects[list[MemberResponse]]:
    """Decide on a LeaveGroup of members or an administrator; the others rebalance once."""
    if group.state is State.DEAD:
        raise CoordinatorNotAvailable(f"group {group.group_id} has moved")
    step = _Step(shard, group, now_ms)
    responses = [_leave_one(step, identity) for identity in identities]
    if any(not response.error_code for response in responses):
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            step.rebalance_or_complete()
        elif group.state is State.PREPARING_REBALANCE:
            step.complete_join_if_all_are_there()
    return step.replying(responses)


def _leave_one(step: "_Step", identity: "MemberIdentity") -> MemberResponse:
    group = step.group
    response = MemberResponse(identity.member_id, identity.group_instance_id)
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id and instance_id is not None:
        member_id = group.static_ids.get(instance_id, "")
    if member_id in group.pending_join:
        group.remove(member_id)
        step.effects.timers["classic.session", group.group_id, member_id] = None
        return response
    try:
        group.check_member(member_id, instance_id if identity.member_id else None)
    except (UnknownMemberId, FencedInstanceId) as error:
        response.error_code = error.code
        return response
    step.remove(member_id)
    return response


def rebalance(shard: "GroupsState", group: ClassicGroup, now_ms: int) -> Effects[None]:
    """Have all members join again, as when a consumer group has become classic."""
    step = _Step(shard, group, now_ms)
    step.rebalance_or_complete()
    return step.effects


# Timers.


def _join_timer(group: ClassicGroup) -> TimerKey:
    return ("classic.join", group.group_id)


def _sync_timer(group: ClassicGroup) -> TimerKey:
    return ("classic.sync", group.group_id)


def on_timer(shard: "GroupsState", key: TimerKey, now_ms: int) -> Effects[None]:
    """Decide what follows the end of a session, a phase of a rebalance, or the first delay."""
    group = shard.groups.get(key[1])
    if not isinstance(group, ClassicGroup) or group.state is State.DEAD:
        return Effects()
    step = _Step(shard, group, now_ms)
    match key[0]:
        case "classic.session":
            step.expire_session(key[2])
        case "classic.join":
            step.expire_join()
        case "classic.sync":
            step.expire_sync()
        case "classic.loaded" if len(group.members) > shard.settings().group_max_size:
            step.prepare_rebalance()  # The limit was lowered: members that join late are rejected.
    return step.effects


class _Step:
    """One decision about one group: a draft of the group, and the effects that it gathers."""

    def __init__(self, shard: "GroupsState", group: ClassicGroup, now_ms: int) -> None:
        self.shard = shard
        self.group = draft = group.copy()
        self.now_ms = now_ms
        self.effects: Effects[Any] = Effects(on_written=lambda: shard.put_classic(draft))

    def replying(self, reply: Any) -> Effects[Any]:
        """The effects with a reply; without one the request waits for an answer to its ticket."""
        self.effects.reply = reply
        return self.effects

    def write(self, assignments: Mapping[str, bytes]) -> None:
        """Write the group with these assignments: it is stable, or empty, from then on."""
        value = self.group.value(self.now_ms, assignments)
        self.effects.records.append(self.group.record(value))
        self.group.apply(value)

    # Members.

    def restart_session(self, member: Member, timeout_ms: int | None = None) -> None:
        delay_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self.effects.timers[session_timer(self.group, member)] = delay_ms

    def remove(self, member_id: str) -> None:
        """Remove a member; its requests that wait are rejected."""
        member = self.release(self.group.members[member_id], UnknownMemberId(), NOBODY)
        self.effects.timers[session_timer(self.group, member)] = None
        self.group.remove(member_id)

    def release(self, member: Member, error: KafkaError, member_id: str) -> Member:
        """Reject the requests of a member that wait; `member_id` is for the join's response."""
        if member.join_ticket is not None:
            self.effects.answers.append((member.join_ticket, refused_join(member_id, error)))
        if member.sync_ticket is not None:
            response = SyncGroupResponse(error_code=error.code)
            self.effects.answers.append((member.sync_ticket, response))
        member = msgspec.structs.replace(member, join_ticket=None, sync_ticket=None)
        self.group.replace(member)
        return member

    # The first phase: all members join.

    def rebalance_or_complete(self) -> None:
        if self.group.may_rebalance:
            self.prepare_rebalance()
        else:
            self.complete_join_if_all_are_there()

    def prepare_rebalance(self) -> None:
        group = self.group
        if group.state is State.COMPLETING_REBALANCE:
            self.reject_syncs(RebalanceInProgress())
        group.pending_sync.clear()
        self.effects.timers[_sync_timer(group)] = None
        group.become(State.PREPARING_REBALANCE, self.now_ms)
        if group.is_initial_rebalance:
            delay_ms = self.shard.settings().group_initial_rebalance_delay_ms
            group.new_member_added = False
            group.initial_delay_ms = delay_ms
            group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self.effects.timers[_join_timer(group)] = delay_ms
        elif group.has_everyone_joined:
            self.complete_join()
        else:
            self.effects.timers[_join_timer(group)] = group.rebalance_timeout_ms

    def complete_join_if_all_are_there(self) -> None:
        group = self.group
        if (
            group.state is State.PREPARING_REBALANCE
            and not group.is_initial_rebalance
            and group.has_everyone_joined
        ):
            self.complete_join()

    def expire_join(self) -> None:
        group = self.group
        if group.state is not State.PREPARING_REBALANCE:
            return
        if group.is_initial_rebalance and group.new_member_added and group.initial_remaining_ms:
            group.new_member_added = False
            delay_ms = min(
                self.shard.settings().group_initial_rebalance_delay_ms, group.initial_remaining_ms
            )
            group.initial_remaining_ms = max(group.initial_remaining_ms - group.initial_delay_ms, 0)
            group.initial_delay_ms = delay_ms
            self.effects.timers[_join_timer(group)] = delay_ms
        else:
            self.complete_join()

    def complete_join(self) -> None:
        """End the first phase: absent members are removed, unless they are static."""
        group = self.group
        self.effects.timers[_join_timer(group)] = None
        for member in list(group.members.values()):
            if member.join_ticket is None and not member.is_static:
                self.remove(member.member_id)
        if group.members and not group.elect_joined_leader():
            # Only absent static members are left: they have another round to come back.
            self.effects.timers[_join_timer(group)] = group.rebalance_timeout_ms
            return
        group.begin_generation(self.now_ms)
        if group.state is State.EMPTY:
            self.write({})
            return
        for member in list(group.members.values()):
            if member.join_ticket is not None:
                self.effects.answers.append((member.join_ticket, _joined(group, member)))
            group.replace(msgspec.structs.replace(member, join_ticket=None, is_new=False))
            self.restart_session(member)
            group.pending_sync.add(member.member_id)
        self.effects.timers[_sync_timer(group)] = group.rebalance_timeout_ms

    # The second phase: all members get an assignment.

    def end_pending_sync(self, member_id: str) -> None:
        self.group.pending_sync.discard(member_id)
        if not self.group.pending_sync:
            self.effects.timers[_sync_timer(self.group)] = None

    def assign(self, assignments: Mapping[str, bytes]) -> None:
        """Write the leader's assignments, and answer the members that wait for theirs."""
        shard, group_id, now_ms = self.shard, self.group.group_id, self.now_ms
        waiting = [one for one in self.group.members.values() if one.sync_ticket is not None]
        self.write(assignments)
        for member in waiting:
            response = _assignment(self.group, self.group.members[member.member_id])
            self.effects.answers.append((member.sync_ticket, response))
            self.restart_session(member)
        self.effects.on_refused = lambda error: _assignment_refused(shard, group_id, error, now_ms)

    def reject_syncs(self, error: KafkaError) -> None:
        """Take all assignments back, and reject the requests that wait for one."""
        for member in list(self.group.members.values()):
            if member.sync_ticket is not None:
                response = SyncGroupResponse(error_code=error.code)
                self.effects.answers.append((member.sync_ticket, response))
                self.restart_session(member)
            self.group.replace(msgspec.structs.replace(member, assignment=b"", sync_ticket=None))

    def expire_sync(self) -> None:
        """Remove members that joined but never fetched an assignment, which delay the others."""
        group = self.group
        if group.state not in (State.COMPLETING_REBALANCE, State.STABLE) or not group.pending_sync:
            return
        for member_id in list(group.pending_sync):
            self.remove(member_id)
        self.prepare_rebalance()

    # Joining and leaving.

    def return_without_rebalance(
        self, member: Member, old_leader: str | None, *, can_skip: bool
    ) -> None:
        group = self.group
        is_leader = member.member_id == group.leader_id
        if can_skip:
            response = _joined(group, member, skip=is_leader)
        else:
            # An old client would assign again as leader, so it gets the old leader's id.
            response = _joined(group, member, leader=old_leader)
        self.effects.answers.append((member.join_ticket, response))
        group.replace(msgspec.structs.replace(member, join_ticket=None))
        self.write({one.member_id: one.assignment for one in group.members.values()})

    def expire_session(self, member_id: str) -> None:
        group = self.group
        if member_id in group.pending_join:
            group.remove(member_id)
            self.complete_join_if_all_are_there()
            return
        member = group.members.get(member_id)
        if member is None or member.is_known_alive:
            return
        self.remove(member_id)
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self.rebalance_or_complete()
        else:
            self.complete_join_if_all_are_there()


def _assignment_refused(
    shard: "GroupsState", group_id: str, error: KafkaError, now_ms: int
) -> Effects[None]:
    """Restart the rebalance after the assignments could not be written."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return Effects()
    step = _Step(shard, group, now_ms)
    step.reject_syncs(error)
    step.prepare_rebalance()
    return step.effects


# Replay.


def replay(shard: "GroupsState", key: Message, value: Message | None) -> None:
    """Apply a record to its classic group: the first record creates it, a tombstone ends it."""
    assert isinstance(key, GroupMetadataKey)
    if value is None:
        shard.groups.pop(key.group, None)
        return
    assert isinstance(value, GroupMetadataValue)
    group = shard.groups.get(key.group)
    if not isinstance(group, ClassicGroup):
        group = shard.groups[key.group] = ClassicGroup(key.group)
    was_rebalancing = group.state is State.COMPLETING_REBALANCE
    group.apply(value)
    if was_rebalancing and group.state is State.STABLE:
        shard.metrics.completed_rebalances += 1
