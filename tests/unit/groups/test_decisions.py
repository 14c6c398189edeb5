"""Decisions about groups change nothing: the shell replays records and puts drafts in."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from headrace.coordination.effects import Effects
from headrace.errors import KafkaError, NotCoordinator
from headrace.groups.classic.protocol import Joining
from headrace.groups.classic_requests import join, leave, sync
from headrace.groups.consumer.protocol import serve_heartbeat as serve_consumer
from headrace.groups.share.protocol import serve_heartbeat as serve_share
from headrace.groups.streams.protocol import serve_heartbeat as serve_streams
from headrace.protocol.schemas.leave_group import MemberIdentity
from headrace.protocol.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest
from headrace.protocol.schemas.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from headrace.protocol.schemas.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.builders.classic_groups import GROUP as CLASSIC_GROUP
from tests.builders.classic_groups import ShardInMemory, Ticket, subscription
from tests.builders.consumer_groups import GROUP, HERE, GroupsInMemory, request_of
from tests.builders.group_shards import GroupShell
from tests.builders.share_groups import GROUP as SHARE_GROUP
from tests.builders.share_groups import ShareGroupsInMemory
from tests.builders.streams_groups import COUNTING, Application

Decide = Callable[[], Effects[Any]]


def stable_classic() -> tuple[GroupShell, list[Decide]]:
    shell = ShardInMemory()
    joined = shell.stable_group(2)
    ids = [one.member_id for one in joined]
    new = Joining(
        *(CLASSIC_GROUP, "", None, "client", "/127.0.0.1", "consumer"),
        *((("range", subscription("orders")),), 10_000, 60_000, "new", False, True),
    )
    session = ("classic.session", CLASSIC_GROUP, ids[0])
    everyone = [MemberIdentity(one) for one in ids]
    return shell, [
        lambda: join(shell.state, new, Ticket(), shell.now_ms),
        lambda: join(shell.state, new._replace(needs_known_id=True), Ticket(), shell.now_ms),
        lambda: join(shell.state, new._replace(group_id="other"), Ticket(), shell.now_ms),
        lambda: join(shell.state, new._replace(member_id=joined[0].leader), Ticket(), shell.now_ms),
        lambda: leave(shell.state, CLASSIC_GROUP, everyone[:1], shell.now_ms),
        lambda: leave(shell.state, CLASSIC_GROUP, everyone, shell.now_ms),
        lambda: shell.state.on_timer(session, shell.now_ms),
    ]


def static_classic() -> tuple[GroupShell, list[Decide]]:
    shell = ShardInMemory()
    ticket = shell.join(instance_id="one")
    shell.pass_time(10_000)
    shell.sync_all([ticket.answer])
    back = Joining(
        *(CLASSIC_GROUP, "", "one", "client", "/127.0.0.1", "consumer"),
        *((("range", subscription("orders")),), 10_000, 60_000, "new", True, True),
    )
    return shell, [lambda: join(shell.state, back, Ticket(), shell.now_ms)]


def syncing_classic() -> tuple[GroupShell, list[Decide]]:
    shell = ShardInMemory()
    tickets = [shell.new_member(), shell.new_member()]
    shell.pass_time(10_000)
    leader = tickets[0].answer.leader
    request = SyncGroupRequest(
        group_id=CLASSIC_GROUP,
        generation_id=1,
        member_id=leader,
        assignments=[SyncGroupRequestAssignment(leader, b"all")],
    )
    sync_timer = ("classic.sync", CLASSIC_GROUP)
    return shell, [
        lambda: sync(shell.state, request, Ticket(), shell.now_ms),
        lambda: shell.state.on_timer(sync_timer, shell.now_ms),
    ]


def consumers() -> tuple[GroupShell, list[Decide]]:
    shell = GroupsInMemory()
    shell.join("ada")
    shell.wait(2_000)
    new = request_of("bob", 0, {}, subscribed_topic_regex="ord.*", rebalance_timeout_ms=60_000)
    gone = request_of("ada", -1)
    return shell, [
        lambda: serve_consumer(shell.state, new, HERE, shell.now_ms),
        lambda: serve_consumer(shell.state, gone, HERE, shell.now_ms),
        lambda: shell.state.on_timer(("consumer.session", GROUP, "ada"), shell.now_ms),
    ]


def sharers() -> tuple[GroupShell, list[Decide]]:
    shell = ShareGroupsInMemory()
    shell.join("ada")
    shell.wait(2_000)
    new = ShareGroupHeartbeatRequest(SHARE_GROUP, "bob", 0, subscribed_topic_names=["orders"])
    other = msgspec.structs.replace(new, group_id="other")
    gone = ShareGroupHeartbeatRequest(SHARE_GROUP, "ada", -1)
    return shell, [
        lambda: serve_share(shell.state, new, HERE, shell.now_ms),
        lambda: serve_share(shell.state, other, HERE, shell.now_ms),
        lambda: serve_share(shell.state, gone, HERE, shell.now_ms),
    ]


def applications() -> tuple[GroupShell, list[Decide]]:
    shell = Application(group_streams_initial_rebalance_delay_ms=3_000)
    shell.start("ada")
    new = StreamsGroupHeartbeatRequest(
        *(GROUP, "bob", 0),
        process_id="bob",
        rebalance_timeout_ms=60_000,
        topology=COUNTING,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        shutdown_application=True,
    )
    other = msgspec.structs.replace(new, group_id="other")
    gone = StreamsGroupHeartbeatRequest(GROUP, "ada", -1, shutdown_application=True)
    return shell, [
        lambda: serve_streams(shell.state, new, HERE, shell.now_ms),
        lambda: serve_streams(shell.state, other, HERE, shell.now_ms),
        lambda: serve_streams(shell.state, gone, HERE, shell.now_ms),
        lambda: shell.state.on_timer(("streams.initial", GROUP), shell.now_ms),
    ]


SCENES = (stable_classic, static_classic, syncing_classic, consumers, sharers, applications)


@pytest.mark.parametrize("scene", SCENES)
def test_a_decision_changes_nothing(scene: Callable[[], tuple[GroupShell, list[Decide]]]) -> None:
    shell, decisions = scene()
    before = everything(shell)
    for decide in decisions:
        effects = decide()
        assert effects.records or effects.on_written is not None
        assert everything(shell) == before


@pytest.mark.parametrize("scene", [one for one in SCENES if one is not syncing_classic])
def test_a_refused_write_changes_nothing(
    scene: Callable[[], tuple[GroupShell, list[Decide]]],
) -> None:
    shell, decisions = scene()
    before = everything(shell)
    shell.refusal = NotCoordinator("the disk is gone")
    written = [effects for effects in (decide() for decide in decisions) if effects.records]
    assert written
    for effects in written:
        with pytest.raises(KafkaError):
            shell.apply(effects)
        assert everything(shell) == before


def everything(shell: GroupShell) -> dict[str, object]:
    """All state of all groups, as text that a later change does not reach."""
    return {group_id: repr(fields_of(group)) for group_id, group in shell.state.groups.items()}


def fields_of(group: object) -> dict[str, object]:
    names = getattr(group, "__slots__", None) or vars(group)
    return {name: getattr(group, name) for name in names if name != "settings"}
