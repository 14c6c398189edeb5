"""The classic group protocol: join, sync, heartbeat, leave, as pure decisions.

A rebalance has two phases. In the first everyone joins, within the longest rebalance timeout; in
the second the leader, a member, brings the assignment, and everyone gets a share of it by
SyncGroup. A new group waits a little for more members before the first phase ends. The
generation counts the rebalances, and what comes from an older one is refused.

Kafka's own coordinator is followed in what it answers and when (KIP-62, KIP-134, KIP-345 static
members, KIP-394 member ids).
"""

from typing import TYPE_CHECKING, Any, NamedTuple

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
from headrace.groups.classic_group import ClassicGroup, Member, Protocols, State
from headrace.groups.consumer_context import Context
from headrace.groups.consumer_group import ConsumerGroup
from headrace.groups.group import Replay
from headrace.protocol.message import Message
from headrace.protocol.schemas.join_group import JoinGroupResponse, JoinGroupResponseMember
from headrace.protocol.schemas.leave_group import MemberResponse
from headrace.protocol.schemas.records.groups import GroupMetadataKey, GroupMetadataValue
from headrace.protocol.schemas.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from headrace.groups.shard import GroupShard
    from headrace.protocol.schemas.leave_group import MemberIdentity
    from headrace.protocol.schemas.sync_group import SyncGroupRequest

NEW_MEMBER_TIMEOUT_MS = 5 * 60_000
"""How long a member may wait for its very first generation before its client counts as gone."""

NOBODY = ""


class Joining(NamedTuple):
    """A JoinGroup request, with what the connection adds to it."""

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
    needs_known_id: bool  # From v4 on a new member is told its id first.
    can_skip_assignment: bool  # From v9 on a returning leader can be told that nothing changed.


# Joining.


def join(
    shard: "GroupShard", joining: Joining, ticket: Ticket, now_ms: int
) -> Effects[JoinGroupResponse]:
    """A member joins or joins again; it usually waits until all others have."""
    is_new = joining.member_id == NOBODY
    group = shard.groups.get(joining.group_id)
    if isinstance(group, ConsumerGroup):
        return _join_consumers(shard, group, joining, ticket, now_ms)
    if group is None:
        if not is_new:
            return refuse_join(joining.member_id, UnknownMemberId())
        group = shard.groups[joining.group_id] = ClassicGroup(joining.group_id)
    if not isinstance(group, ClassicGroup):
        return refuse_join(NOBODY, InconsistentGroupProtocol())
    if not _has_room_for(group, joining.member_id, shard.settings().group_max_size):
        group.remove(joining.member_id)
        return refuse_join(NOBODY, GroupMaxSizeReached())
    if group.state is State.DEAD:
        return refuse_join(joining.member_id, CoordinatorNotAvailable())
    if not group.supports(joining.protocol_type, joining.protocols):
        return refuse_join(joining.member_id, InconsistentGroupProtocol())
    step = _Step(shard, group, now_ms)
    if is_new:
        return _join_new(step, joining, ticket)
    if joining.member_id in group.pending_join:
        return _add(step, joining, joining.member_id, ticket)
    return _join_again(step, joining, ticket)


def _join_consumers(
    shard: "GroupShard", group: ConsumerGroup, joining: Joining, ticket: Ticket, now_ms: int
) -> Effects[JoinGroupResponse]:
    """A member of this protocol joins a group of the new one; an empty one becomes classic."""
    from headrace.groups import consumer_classic

    if group.members:
        try:
            return consumer_classic.join(group, joining, _context(shard, group, now_ms))
        except KafkaError as error:
            return refuse_join(joining.member_id, error)
    if joining.member_id != NOBODY:
        return refuse_join(joining.member_id, UnknownMemberId())
    tombstones = group.tombstones()
    shard.groups[joining.group_id] = ClassicGroup(joining.group_id)
    effects = join(shard, joining, ticket, now_ms)
    effects.records[:0] = tombstones
    return effects


def _context(shard: "GroupShard", group: ConsumerGroup, now_ms: int) -> Context:
    return Context(shard.image(), group.settings(), now_ms)


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
    timer = ("classic.session", group.group_id, new_id)
    return Effects(
        reply=refused_join(new_id, MemberIdRequired()), timers={timer: joining.session_timeout_ms}
    )


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
        is_new=True,
    )
    if group.state is State.PREPARING_REBALANCE and group.is_initial_rebalance:
        group.new_member_added = True
    group.add(member, ticket)
    step.restart_session(member, NEW_MEMBER_TIMEOUT_MS)
    step.rebalance_or_complete()
    return step.waiting()


def _join_again(step: "_Step", joining: Joining, ticket: Ticket) -> Effects[JoinGroupResponse]:
    group = step.group
    try:
        group.check_member(joining.member_id, joining.instance_id)
    except (UnknownMemberId, FencedInstanceId) as error:
        return refuse_join(joining.member_id, error)
    member = group.members[joining.member_id]
    is_same = member.protocols == joining.protocols
    match group.state:
        case State.COMPLETING_REBALANCE if is_same:
            return Effects(reply=_joined(group, member))  # Its answer was lost; here it is again.
        case State.STABLE if is_same and member.member_id != group.leader_id:
            return Effects(reply=_joined(group, member))
        case State.EMPTY:
            return refuse_join(joining.member_id, UnknownMemberId())
    _update(group, member, joining, ticket)
    step.rebalance_or_complete()
    return step.waiting()


def _update(group: ClassicGroup, member: Member, joining: Joining, ticket: Ticket) -> None:
    group.update(
        member, joining.protocols, joining.rebalance_timeout_ms, joining.session_timeout_ms
    )
    group.set_join_ticket(member, ticket)


def _joined(
    group: ClassicGroup, member: Member, *, leader: str | None = None, skip: bool = False
) -> JoinGroupResponse:
    """The answer that ends the first phase; only the leader hears of the others."""
    is_leader = member.member_id == group.leader_id and leader is None
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type_or_none,
        protocol_name=group.protocol,
        leader=leader or group.leader_id or NOBODY,
        skip_assignment=skip,
        member_id=member.member_id,
        members=_leaders_view(group) if is_leader else [],
    )


def _leaders_view(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(one.member_id, one.instance_id, one.metadata_for(group.protocol))
        for one in group.members.values()
    ]


def _replace_static(
    step: "_Step", joining: Joining, old_id: str, new_id: str, ticket: Ticket
) -> Effects[JoinGroupResponse]:
    """A static member came back without its id: it takes its place again, under a new one.

    In a stable group its return changes nothing for the others, unless it brings another
    protocol; so it gets its old share back without a rebalance.
    """
    group = step.group
    member = group.members[old_id]
    before = (old_id, member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    old_leader = group.leader_id
    step.fence(member)
    step.effects.timers[session_timer(group, member)] = None
    group.rename(member, new_id)
    step.restart_session(member)
    _update(group, member, joining, ticket)
    match group.state:
        case State.STABLE if group.vote() == group.protocol:
            step.return_without_rebalance(
                member, before, old_leader, can_skip=joining.can_skip_assignment
            )
        case State.STABLE:
            step.rebalance_or_complete()
        case State.COMPLETING_REBALANCE:
            step.prepare_rebalance()
        case _:
            step.complete_join_if_all_are_there()
    return step.waiting()


# Syncing.


def sync(
    shard: "GroupShard", request: "SyncGroupRequest", ticket: Ticket, now_ms: int
) -> Effects[SyncGroupResponse]:
    """A member asks for its share; the leader brings everyone's."""
    group = shard.groups.get(request.group_id)
    if isinstance(group, ConsumerGroup):
        from headrace.groups import consumer_classic

        return consumer_classic.sync(group, request, _context(shard, group, now_ms))
    if not isinstance(group, ClassicGroup) or group.state is State.EMPTY:
        raise UnknownMemberId(f"group {request.group_id} has no members")
    _check_sync(group, request)
    member = group.members[request.member_id]
    match group.state:
        case State.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"group {group.group_id} is rebalancing")
        case State.STABLE:
            effects = Effects(reply=_share(group, member))
            _has_synced(group, member, effects)
            return effects
    member.sync_ticket = ticket
    step = _Step(shard, group, now_ms)
    _has_synced(group, member, step.effects)
    if member.member_id == group.leader_id:
        step.share_out({one.member_id: one.assignment for one in request.assignments})
    return step.waiting()


def _check_sync(group: ClassicGroup, request: "SyncGroupRequest") -> None:
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


def _has_synced(group: ClassicGroup, member: Member, effects: Effects[SyncGroupResponse]) -> None:
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        effects.timers[_sync_timer(group)] = None


def _share(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type_or_none,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )


# Heartbeats and leaving.


def heartbeat(
    shard: "GroupShard", group_id: str, member_id: str, instance_id: str | None, generation: int
) -> Effects[int]:
    """A member is alive; the reply is the error code that tells it what goes on."""
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        from headrace.groups import consumer_classic

        return consumer_classic.heartbeat(group, member_id, instance_id, generation)
    if not isinstance(group, ClassicGroup):
        raise UnknownMemberId(f"there is no group {group_id}")
    if group.state is State.DEAD:
        raise CoordinatorNotAvailable(f"group {group_id} has moved")
    group.check_member(member_id, instance_id)
    if generation != group.generation:
        raise IllegalGeneration(
            f"group {group_id} is at generation {group.generation}, not {generation}"
        )
    if group.state is State.EMPTY:
        raise UnknownMemberId(f"group {group_id} has no members")
    code = RebalanceInProgress.code if group.state is State.PREPARING_REBALANCE else 0
    session_ms = group.members[member_id].session_timeout_ms
    return Effects(reply=code, timers={("classic.session", group_id, member_id): session_ms})


def keep_alive_by_commit(
    shard: "GroupShard", group_id: str, member_id: str
) -> tuple[TimerKey, int] | None:
    """The session that a commit keeps up, as a heartbeat does, and for how long."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return None
    if group.state not in (State.STABLE, State.PREPARING_REBALANCE):
        return None
    member = group.members.get(member_id)
    return None if member is None else (session_timer(group, member), member.session_timeout_ms)


def leave(
    shard: "GroupShard", group_id: str, identities: "list[MemberIdentity]", now_ms: int
) -> Effects[list[MemberResponse]]:
    """Members leave, or an administrator removes them; the rest rebalance once."""
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        from headrace.groups import consumer_classic

        return consumer_classic.leave(group, identities, _context(shard, group, now_ms))
    if not isinstance(group, ClassicGroup):
        raise UnknownMemberId(f"there is no group {group_id}")
    if group.state is State.DEAD:
        raise CoordinatorNotAvailable(f"group {group_id} has moved")
    step = _Step(shard, group, now_ms)
    responses = [_leave_one(step, identity) for identity in identities]
    if any(not response.error_code for response in responses):
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            step.rebalance_or_complete()
        elif group.state is State.PREPARING_REBALANCE:
            step.complete_join_if_all_are_there()
    effects = step.effects
    return Effects(
        reply=responses,
        records=effects.records,
        answers=effects.answers,
        timers=effects.timers,
        on_refused=effects.on_refused,
    )


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
    step.remove(group.members[member_id])
    return response


def rebalance(shard: "GroupShard", group: ClassicGroup, now_ms: int) -> Effects[None]:
    """Have all members join again, as when a consumer group has become classic."""
    step = _Step(shard, group, now_ms)
    step.rebalance_or_complete()
    return step.effects


# Timers.


def session_timer(group: ClassicGroup, member: Member) -> TimerKey:
    return ("classic.session", group.group_id, member.member_id)


def _join_timer(group: ClassicGroup) -> TimerKey:
    return ("classic.join", group.group_id)


def _sync_timer(group: ClassicGroup) -> TimerKey:
    return ("classic.sync", group.group_id)


def on_timer(shard: "GroupShard", key: TimerKey, now_ms: int) -> Effects[None]:
    """A session, a phase of a rebalance, or the first delay is over."""
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
            step.prepare_rebalance()  # The limit was lowered; who joins too late is refused.
    return step.effects


class _Step:
    """One decision about one group, with the effects that it gathers."""

    def __init__(self, shard: "GroupShard", group: ClassicGroup, now_ms: int) -> None:
        self.shard = shard
        self.group = group
        self.now_ms = now_ms
        self.effects: Effects[Any] = Effects()

    def waiting(self) -> Effects[Any]:
        """The request waits; perhaps only for the answers of this very decision."""
        return self.effects

    # Members.

    def restart_session(self, member: Member, timeout_ms: int | None = None) -> None:
        delay_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self.effects.timers[session_timer(self.group, member)] = delay_ms

    def remove(self, member: Member) -> None:
        """A member goes; should it wait for anything, it learns that it is gone."""
        self.effects.timers[session_timer(self.group, member)] = None
        self.answer_join(member, refused_join(NOBODY, UnknownMemberId()))
        self.answer_sync(member, SyncGroupResponse(error_code=UnknownMemberId.code))
        self.group.remove(member.member_id)

    def fence(self, member: Member) -> None:
        """Whoever still waits under a static member's old id is not it any more."""
        self.answer_join(member, refused_join(member.member_id, FencedInstanceId()))
        self.answer_sync(member, SyncGroupResponse(error_code=FencedInstanceId.code))

    def answer_join(self, member: Member, response: JoinGroupResponse) -> None:
        if member.join_ticket is not None:
            self.effects.answers.append((member.join_ticket, response))
            self.group.set_join_ticket(member, None)

    def answer_sync(self, member: Member, response: SyncGroupResponse) -> None:
        if member.sync_ticket is not None:
            self.effects.answers.append((member.sync_ticket, response))
            member.sync_ticket = None

    # The first phase: everyone joins.

    def rebalance_or_complete(self) -> None:
        if self.group.may_rebalance:
            self.prepare_rebalance()
        else:
            self.complete_join_if_all_are_there()

    def prepare_rebalance(self) -> None:
        group = self.group
        if group.state is State.COMPLETING_REBALANCE:
            self.refuse_syncs(RebalanceInProgress())
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
        """The first phase is over: who is not there is out, unless it is a static member."""
        group = self.group
        self.effects.timers[_join_timer(group)] = None
        for member in list(group.members.values()):
            if member.join_ticket is None and not member.is_static:
                self.remove(member)
        if group.members and not group.elect_joined_leader():
            # Only absent static members are left: they have another round to come back.
            self.effects.timers[_join_timer(group)] = group.rebalance_timeout_ms
            return
        group.begin_generation(self.now_ms)
        if group.state is State.EMPTY:
            self.effects.records.append(group.record(self.now_ms, {}))
            return
        for member in group.members.values():
            self.answer_join(member, _joined(group, member))
            self.restart_session(member)
            member.is_new = False
            group.pending_sync.add(member.member_id)
        self.effects.timers[_sync_timer(group)] = group.rebalance_timeout_ms

    # The second phase: everyone gets a share.

    def share_out(self, assignments: dict[str, bytes]) -> None:
        """The leader has decided: write it, then tell everyone who has asked.

        The record's replay makes the group stable and forgets those who waited.
        """
        group = self.group
        self.effects.records.append(group.record(self.now_ms, assignments))
        self.effects.on_refused = self.undo_share_out
        for member in group.members.values():
            if member.sync_ticket is not None:
                share = SyncGroupResponse(
                    protocol_type=group.protocol_type_or_none,
                    protocol_name=group.protocol,
                    assignment=assignments.get(member.member_id, b""),
                )
                self.effects.answers.append((member.sync_ticket, share))
                self.restart_session(member)

    def undo_share_out(self, error: KafkaError) -> Effects[None]:
        """The assignment could not be written: nobody gets it, and everyone joins again."""
        step = _Step(self.shard, self.group, self.now_ms)
        step.refuse_syncs(error)
        step.prepare_rebalance()
        return step.effects

    def refuse_syncs(self, error: KafkaError) -> None:
        for member in self.group.members.values():
            member.assignment = b""
            if member.sync_ticket is not None:
                self.answer_sync(member, SyncGroupResponse(error_code=error.code))
                self.restart_session(member)

    def expire_sync(self) -> None:
        """Members that joined and never came for their share hold up the others: out."""
        group = self.group
        if group.state not in (State.COMPLETING_REBALANCE, State.STABLE) or not group.pending_sync:
            return
        for member_id in list(group.pending_sync):
            self.remove(group.members[member_id])
        self.prepare_rebalance()

    # Comings and goings.

    def return_without_rebalance(
        self,
        member: Member,
        before: tuple[str, Protocols, int, int],
        old_leader: str | None,
        *,
        can_skip: bool,
    ) -> None:
        group = self.group
        is_leader = member.member_id == group.leader_id
        if can_skip:
            response = _joined(group, member, skip=is_leader)
        else:
            # An old client that learnt it leads would assign anew; so it does not learn it.
            response = _joined(group, member, leader=old_leader)
        ticket = member.join_ticket
        group.set_join_ticket(member, None)
        assignments = {one.member_id: one.assignment for one in group.members.values()}
        self.effects.records.append(group.record(self.now_ms, assignments))
        self.effects.answers.append((ticket, response))

        def undo(error: KafkaError) -> Effects[None]:
            old_id, protocols, rebalance_ms, session_ms = before
            timers: dict[TimerKey, int | None] = {session_timer(group, member): None}
            group.rename(member, old_id)
            group.update(member, protocols, rebalance_ms, session_ms)
            timers[session_timer(group, member)] = session_ms
            return Effects(timers=timers, answers=[(ticket, refused_join(NOBODY, error))])

        self.effects.on_refused = undo

    def expire_session(self, member_id: str) -> None:
        group = self.group
        if member_id in group.pending_join:
            group.remove(member_id)
            self.complete_join_if_all_are_there()
            return
        member = group.members.get(member_id)
        if member is None or member.is_known_alive:
            return
        self.remove(member)
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self.rebalance_or_complete()
        else:
            self.complete_join_if_all_are_there()


# Replay.


def _replay_group(shard: "GroupShard", key: Message, value: Message | None) -> None:
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


REPLAYS: dict[int, Replay] = {GroupMetadataKey.API_KEY: _replay_group}
