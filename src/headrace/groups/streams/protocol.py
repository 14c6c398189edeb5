"""The streams group protocol (KIP-1071): the broker assigns the tasks of an application.

Members send their topology when they join; the broker sees to the internal topics that it needs,
assigns the tasks, and has each member take its steps (`reconciliation.py`).
"""

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from headrace.coordination.effects import Effects, TimerKey
from headrace.errors import InvalidRequest, StreamsInvalidTopology
from headrace.groups.classic.group import ClassicGroup, State
from headrace.groups.epochs import group as epochs
from headrace.groups.epochs.draft import context_of
from headrace.groups.epochs.group import find_group, new_group, overdue_member
from headrace.groups.epochs.heartbeat import (
    Answer,
    Client,
    check_epoch,
    check_not_empty,
    check_room,
)
from headrace.groups.epochs.members import JOINING, LEAVING, LEAVING_FOR_NOW
from headrace.groups.streams.draft import StreamsDraft
from headrace.groups.streams.group import INITIAL, StreamsContext, StreamsGroup
from headrace.groups.streams.records import StreamsMember, tasks_in
from headrace.groups.streams.replies import StreamsAnswer, reply_to
from headrace.groups.streams.tasks import Tasks
from headrace.groups.streams.topology import ConfiguredTopology
from headrace.protocol.schemas.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from headrace.groups.state import GroupsState


replay = partial(epochs.replay, StreamsGroup)
"""Applies a record to its streams group."""


def on_timer(shard: "GroupsState", key: TimerKey, now_ms: int) -> Effects[None]:
    """Remove a member that was silent or slow for too long, or end the wait of a new group."""
    group = shard.groups.get(key[1])
    if not isinstance(group, StreamsGroup):
        return Effects()
    draft = StreamsDraft(group, context_of(shard, group, now_ms))
    if key[0] == INITIAL:
        draft.remember(delayed_until_ms=0)
        if group.members and group.topology is not None:
            draft.update_target(draft.configure(group.topology).result)
    elif (member := overdue_member(group, key)) is not None:
        draft.remove_and_bump(member)
    return draft.effects(None)


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise if the fields of a heartbeat are inconsistent."""
    check_not_empty(MemberId=request.member_id, GroupId=request.group_id)
    if request.instance_id is not None:
        raise InvalidRequest("Static membership is not yet supported.")
    if request.warmup_tasks:
        raise InvalidRequest("WarmupTasks are not supported yet.")
    epoch = request.member_epoch
    if epoch < LEAVING_FOR_NOW:
        raise InvalidRequest(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    if epoch == JOINING:
        _check_join(request)
    elif request.topology is not None:
        raise InvalidRequest("Topology can only be provided when (re-)joining.")
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(one is not None for one in tasks) and any(one is None for one in tasks):
        raise InvalidRequest("If one task-type is non-null, all must be non-null.")


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    if request.active_tasks or request.standby_tasks:
        raise InvalidRequest("Tasks must be empty when (re-)joining.")
    if request.topology is None:
        raise InvalidRequest("Topology must be non-null when (re-)joining.")
    for one in request.topology.subtopologies:
        if one.source_topic_regex:
            raise InvalidRequest("Regular expressions for source topics are not supported yet.")
        if any(topic.partitions for topic in one.state_changelog_topics):
            raise StreamsInvalidTopology("Changelog topics must not have a partition count.")


def serve_heartbeat(
    shard: "GroupsState", request: StreamsGroupHeartbeatRequest, client: Client, now_ms: int
) -> Effects[StreamsAnswer]:
    """Decide on a heartbeat that `check_request` has passed."""
    known = shard.groups.get(request.group_id)
    if request.member_epoch == JOINING and (known is None or _is_empty_classic(known)):
        group = new_group(shard, request.group_id, StreamsGroup)
        effects = heartbeat(group, request, client, context_of(shard, group, now_ms))
        effects.records[:0] = known.tombstones() if known is not None else ()
        return effects
    group = find_group(shard, request.group_id, StreamsGroup)
    context = context_of(shard, group, now_ms)
    if request.member_epoch < 0:
        return leave(group, request, context)
    return heartbeat(group, request, client, context)


def _is_empty_classic(group: object) -> bool:
    return isinstance(group, ClassicGroup) and group.state is State.EMPTY


def leave(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, context: StreamsContext
) -> Effects[StreamsAnswer]:
    """Decide on a member's last heartbeat, which may shut down the application."""
    member = group.member(request.member_id)
    draft = StreamsDraft(group, context)
    if request.shutdown_application:
        draft.remember(shutdown_requested_by=member.id)
    draft.remove_and_bump(member)
    response = StreamsGroupHeartbeatResponse(
        member_id=member.id, member_epoch=request.member_epoch or LEAVING
    )
    return draft.effects(Answer(response, ()))


def heartbeat(
    group: StreamsGroup,
    request: StreamsGroupHeartbeatRequest,
    client: Client,
    context: StreamsContext,
) -> Effects[StreamsAnswer]:
    """Decide on a heartbeat of a member that joins or stays."""
    draft = StreamsDraft(group, context)
    member = _member_of(group, request, context)
    reported = reported_tasks(request)
    described = draft.describe(member, _described(member, request, client))
    configured = draft.configure(draft.topology_of(request))
    _check_tasks(configured.result, reported)
    draft.bump_epoch_if_due(configured, member_changed=described != member)
    draft.delay_first_assignment()
    draft.update_target(configured.result)
    updated = draft.take_step(described, reported)
    draft.keep_alive(updated)
    if request.shutdown_application:
        draft.remember(shutdown_requested_by=member.id)
    # A member with other tasks than its own has missed the response that assigned them, and
    # reports its tasks for that very reason; Kafka would leave it without them for good.
    is_unaware = reported is not None and reported != updated.assigned
    has_news = request.member_epoch == JOINING or updated.assigned != member.assigned or is_unaware
    return draft.effects(reply_to(draft, request, updated, configured, has_news=has_news))


def _member_of(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, context: StreamsContext
) -> StreamsMember:
    if request.member_epoch == JOINING:
        check_room(group, request.member_id, context.settings.max_size)
        return group.members.get(request.member_id) or StreamsMember(request.member_id)
    member = group.member(request.member_id)
    check_epoch(group, member, request.member_epoch, lambda: _owns_no_more(member, request))
    return member


def _owns_no_more(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> bool:
    reported = reported_tasks(request)
    return reported is not None and not reported - member.assigned


def reported_tasks(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """The tasks that a member reports to have; None if its heartbeat did not contain them."""
    if request.active_tasks is None or request.standby_tasks is None:
        return None
    return Tasks(tasks_in(request.active_tasks), tasks_in(request.standby_tasks))


def _check_tasks(configured: ConfiguredTopology, reported: Tasks | None) -> None:
    if reported is None or not configured.is_ready or configured.tasks is None:
        return
    for subtopology, number in reported.active | reported.standby:
        if not 0 <= number < configured.tasks.get(subtopology, 0):
            raise InvalidRequest(f"There is no task {subtopology}_{number} in the topology.")


def _described(
    member: StreamsMember, request: StreamsGroupHeartbeatRequest, client: Client
) -> StreamsMember:
    """The member with a heartbeat's fields; missing fields keep their value."""
    endpoint, tags, topology = request.user_endpoint, request.client_tags, request.topology
    timeout_ms = request.rebalance_timeout_ms
    return msgspec.structs.replace(
        member,
        rack_id=request.rack_id or member.rack_id,
        client_id=client.id,
        client_host=client.host,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        process_id=request.process_id or member.process_id,
        endpoint=member.endpoint if endpoint is None else (endpoint.host, endpoint.port),
        tags=member.tags if tags is None else tuple((one.key, one.value) for one in tags),
    )
