"""The classic group protocol, request by request, against what Kafka's coordinator answers."""

from typing import Any

import pytest

from headrace.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from headrace.groups.classic.group import State
from headrace.settings.broker import BrokerSettings
from tests.builders.classic_groups import GROUP, ShardInMemory

OLD = 3  # A version of JoinGroup that needs no member id first.


@pytest.fixture
def shard() -> ShardInMemory:
    return ShardInMemory()


# Joining.


def test_a_new_member_gets_its_id_first(shard: ShardInMemory) -> None:
    """CON-3: KIP-394."""
    first = shard.join(client_id="ada")
    assert first.code == MemberIdRequired.code
    assert first.answer.member_id.startswith("ada-")
    assert shard.group.state_name == "Empty"
    second = shard.join(first.answer.member_id)
    assert second.answer is None
    assert shard.group.state_name == "PreparingRebalance"


def test_an_old_client_joins_without_an_id(shard: ShardInMemory) -> None:
    ticket = shard.join(version=OLD)
    shard.pass_time(3000)
    assert ticket.code == 0


def test_an_id_that_is_not_used_is_forgotten(shard: ShardInMemory) -> None:
    pending = shard.join(session_ms=6000).answer.member_id
    shard.pass_time(6000)
    assert shard.join(pending).code == UnknownMemberId.code


def test_a_member_of_an_unknown_group_is_unknown(shard: ShardInMemory) -> None:
    assert shard.join("ghost").code == UnknownMemberId.code
    shard.stable_group()
    assert shard.join("ghost").code == UnknownMemberId.code


def test_a_new_group_waits_for_more_members(shard: ShardInMemory) -> None:
    """CON-3: group.initial.rebalance.delay.ms, again for each round that brought someone."""
    first = shard.new_member()
    shard.pass_time(2900)
    second = shard.new_member()
    shard.pass_time(200)
    assert not first.is_answered
    shard.pass_time(3000)
    assert first.code == second.code == 0
    assert first.answer.generation_id == second.answer.generation_id == 1


def test_the_first_delay_ends_with_the_rebalance_timeout() -> None:
    shard = ShardInMemory()
    first = shard.new_member(rebalance_ms=5000)
    for _ in range(4):
        shard.pass_time(1500)
        shard.new_member(rebalance_ms=5000)
    assert first.code == 0


def test_only_the_leader_gets_the_list_of_members(shard: ShardInMemory) -> None:
    joined = shard.stable_group(3)
    leader = joined[0].leader
    for one in joined:
        assert len(one.members) == (3 if one.member_id == leader else 0)


def test_the_protocol_that_most_like_best_is_chosen(shard: ShardInMemory) -> None:
    tickets = [
        shard.new_member(protocols=("range", "sticky")),
        shard.new_member(protocols=("sticky", "range")),
        shard.new_member(protocols=("sticky", "other", "range")),
    ]
    shard.pass_time(10_000)
    assert {ticket.answer.protocol_name for ticket in tickets} == {"sticky"}


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("connect", ("range",)), ("consumer", ("other",))]
)
def test_a_member_that_cannot_take_part_is_refused(
    shard: ShardInMemory, protocol_type: str, protocols: tuple[str, ...]
) -> None:
    shard.stable_group()
    ticket = shard.join(protocol_type=protocol_type, protocols=protocols)
    assert ticket.code == InconsistentGroupProtocol.code


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", ("range",)), ("consumer", ())])
def test_a_group_needs_a_protocol(
    shard: ShardInMemory, protocol_type: str, protocols: tuple[str, ...]
) -> None:
    ticket = shard.join(protocol_type=protocol_type, protocols=protocols)
    assert ticket.code == InconsistentGroupProtocol.code


def test_a_full_group_accepts_no_member() -> None:
    """CON-3: group.max.size."""
    shard = ShardInMemory(BrokerSettings(group_max_size=2))
    joined = shard.stable_group(2)
    assert shard.join().code == GroupMaxSizeReached.code
    assert shard.heartbeat(joined[0].member_id, 1) == 0


def test_members_that_do_not_rejoin_in_time_are_removed(shard: ShardInMemory) -> None:
    joined = shard.stable_group(2, rebalance_ms=20_000, session_ms=60_000)
    newcomer = shard.new_member(rebalance_ms=20_000)
    rejoined = shard.join(joined[0].member_id, rebalance_ms=20_000)
    shard.pass_time(19_999)
    assert newcomer.answer is None
    shard.pass_time(1)
    assert newcomer.code == rejoined.code == 0
    assert joined[1].member_id not in shard.group.members
    assert shard.heartbeat(joined[1].member_id, 1) == UnknownMemberId.code


def test_a_departed_leader_is_replaced(shard: ShardInMemory) -> None:
    """CON-3: leader handover."""
    joined = shard.stable_group(3)
    leader = joined[0].leader
    shard.leave(leader)
    others = [one.member_id for one in joined if one.member_id != leader]
    tickets = [shard.join(one) for one in others]
    assert {ticket.answer.leader for ticket in tickets} <= set(others)
    assert len({ticket.answer.leader for ticket in tickets}) == 1


def test_a_follower_that_rejoins_unchanged_causes_no_rebalance(
    shard: ShardInMemory,
) -> None:
    joined = shard.stable_group(2)
    follower = next(one for one in joined if one.member_id != one.leader)
    again = shard.join(follower.member_id)
    assert again.answer.generation_id == 1
    assert shard.group.state is State.STABLE


def test_a_leader_that_rejoins_causes_a_rebalance(shard: ShardInMemory) -> None:
    joined = shard.stable_group(2)
    shard.join(joined[0].leader)
    assert shard.group.state is State.PREPARING_REBALANCE


def test_a_follower_with_another_subscription_causes_a_rebalance(
    shard: ShardInMemory,
) -> None:
    joined = shard.stable_group(2)
    follower = next(one for one in joined if one.member_id != one.leader)
    shard.join(follower.member_id, topics=("orders", "bills"))
    assert shard.group.state is State.PREPARING_REBALANCE


def test_a_lost_answer_to_a_join_is_given_again(shard: ShardInMemory) -> None:
    ticket = shard.new_member()
    shard.pass_time(3000)
    assert shard.group.state is State.COMPLETING_REBALANCE
    again = shard.join(ticket.answer.member_id)
    assert again.answer == ticket.answer


# Syncing.


def test_members_get_the_assignments_of_the_leader(shard: ShardInMemory) -> None:
    tickets = [shard.new_member(), shard.new_member()]
    shard.pass_time(10_000)
    joined = [ticket.answer for ticket in tickets]
    synced = shard.sync_all(joined)
    assert {ticket.answer.assignment for ticket in synced} == {
        one.member_id.encode() for one in joined
    }
    assert shard.group.state is State.STABLE


def test_a_member_that_the_leader_forgot_gets_an_empty_share(shard: ShardInMemory) -> None:
    tickets = [shard.new_member(), shard.new_member()]
    shard.pass_time(10_000)
    leader = tickets[0].answer.leader
    follower = next(t.answer for t in tickets if t.answer.member_id != leader)
    waiting = shard.sync(follower.member_id, 1)
    shard.sync(leader, 1, {leader: b"all"})
    assert waiting.answer.assignment == b""


def test_a_late_member_gets_its_share_at_once(shard: ShardInMemory) -> None:
    joined = shard.stable_group()
    again = shard.sync(joined[1].member_id, 1)
    assert again.answer.assignment == joined[1].member_id.encode()


@pytest.mark.parametrize(
    ("member", "generation", "protocol", "code"),
    [
        ("ghost", 1, None, UnknownMemberId.code),
        (None, 0, None, IllegalGeneration.code),
        (None, 1, "other", InconsistentGroupProtocol.code),
    ],
)
def test_a_sync_that_does_not_fit_is_refused(
    shard: ShardInMemory, member: str | None, generation: int, protocol: str | None, code: int
) -> None:
    joined = shard.stable_group()
    ticket = shard.sync(member or joined[0].member_id, generation, protocol=protocol)
    assert ticket.code == code


def test_a_sync_during_a_rebalance_is_refused(shard: ShardInMemory) -> None:
    joined = shard.stable_group()
    shard.new_member()
    assert shard.sync(joined[0].member_id, 1).code == RebalanceInProgress.code


def test_members_waiting_for_a_share_learn_of_the_next_rebalance(shard: ShardInMemory) -> None:
    tickets = [shard.new_member(), shard.new_member()]
    shard.pass_time(10_000)
    leader = tickets[0].answer.leader
    follower = next(t.answer for t in tickets if t.answer.member_id != leader)
    waiting = shard.sync(follower.member_id, 1)
    shard.new_member()
    assert waiting.code == RebalanceInProgress.code


def test_members_that_never_sync_are_removed(shard: ShardInMemory) -> None:
    """CON-3: else one stuck client would hold up the whole group for ever."""
    tickets = [shard.new_member(session_ms=300_000), shard.new_member(session_ms=300_000)]
    shard.pass_time(10_000)
    leader = tickets[0].answer.leader
    silent = next(t.answer for t in tickets if t.answer.member_id != leader)
    shard.sync(leader, 1, {leader: b"all"})
    shard.pass_time(60_000)
    assert silent.member_id not in shard.group.members
    assert shard.group.state is State.PREPARING_REBALANCE


def test_an_assignment_that_cannot_be_written_is_not_sent(shard: ShardInMemory) -> None:
    """DEL-2: no answer precedes the write."""
    ticket = shard.new_member()
    shard.pass_time(3000)
    member_id = ticket.answer.member_id
    shard.refusal = NotCoordinator("the disk is gone")
    assert shard.sync(member_id, 1, {member_id: b"all"}).code == NotCoordinator.code
    assert shard.group.state is State.PREPARING_REBALANCE
    shard.refusal = None
    assert shard.join(member_id).answer.generation_id == 2


# Heartbeats, sessions, leaving.


def test_heartbeats_keep_a_member(shard: ShardInMemory) -> None:
    joined = shard.stable_group(1)
    for _ in range(10):
        shard.pass_time(9000)
        assert shard.heartbeat(joined[0].member_id, 1) == 0


def test_a_silent_member_is_removed(shard: ShardInMemory) -> None:
    """CON-5: session.timeout.ms."""
    joined = shard.stable_group(2)
    shard.pass_time(9000)
    assert shard.heartbeat(joined[0].member_id, 1) == 0
    shard.pass_time(2000)
    assert shard.heartbeat(joined[1].member_id, 1) == UnknownMemberId.code
    assert shard.heartbeat(joined[0].member_id, 1) == RebalanceInProgress.code


def test_commits_keep_a_member(shard: ShardInMemory) -> None:
    from headrace.groups.classic.protocol import keep_alive_by_commit

    joined = shard.stable_group(1)
    found = keep_alive_by_commit(shard.state, GROUP, joined[0].member_id)
    assert found == (("classic.session", GROUP, joined[0].member_id), 10_000)
    assert keep_alive_by_commit(shard.state, GROUP, "ghost") is None


@pytest.mark.parametrize(
    ("member", "generation", "code"),
    [("ghost", 1, UnknownMemberId.code), (None, 7, IllegalGeneration.code)],
)
def test_a_heartbeat_that_does_not_fit_is_refused(
    shard: ShardInMemory, member: str | None, generation: int, code: int
) -> None:
    joined = shard.stable_group()
    assert shard.heartbeat(member or joined[0].member_id, generation) == code


def test_a_member_that_waits_to_join_is_not_silent(shard: ShardInMemory) -> None:
    joined = shard.stable_group(2, session_ms=10_000, rebalance_ms=120_000)
    waiting = shard.join(joined[0].leader, rebalance_ms=120_000)
    other = next(one.member_id for one in joined if one.member_id != one.leader)
    for _ in range(3):
        shard.pass_time(9000)
        shard.heartbeat(other, 1)
    assert joined[0].leader in shard.group.members
    shard.join(other, rebalance_ms=120_000)
    assert waiting.code == 0


def test_a_new_member_with_a_disconnected_client_is_removed(shard: ShardInMemory) -> None:
    joined = shard.stable_group(1, rebalance_ms=3_600_000)
    shard.new_member(rebalance_ms=3_600_000)
    for _ in range(35):
        shard.pass_time(9000)
        shard.heartbeat(joined[0].member_id, 1)
    assert list(shard.group.members) == [joined[0].member_id]


def test_a_leaving_member_makes_the_others_rebalance(shard: ShardInMemory) -> None:
    joined = shard.stable_group(3)
    assert [one.error_code for one in shard.leave(joined[2].member_id)] == [0]
    assert shard.heartbeat(joined[0].member_id, 1) == RebalanceInProgress.code
    tickets = [shard.join(one.member_id) for one in joined[:2]]
    assert [ticket.code for ticket in tickets] == [0, 0]


def test_a_group_that_everyone_left_is_empty(shard: ShardInMemory) -> None:
    joined = shard.stable_group(2)
    shard.leave(*(one.member_id for one in joined))
    assert shard.group.state is State.EMPTY
    assert shard.group.generation == 2
    shard.reload()
    assert (shard.group.state, shard.group.generation) == (State.EMPTY, 2)


def test_leaving_has_a_result_for_each_member(shard: ShardInMemory) -> None:
    joined = shard.stable_group(2)
    pending = shard.join().answer.member_id
    responses = shard.leave(joined[0].member_id, "ghost", pending, ("", "nobody"))
    unknown = UnknownMemberId.code
    assert [one.error_code for one in responses] == [0, unknown, 0, unknown]


# Static members.


def static_group(shard: ShardInMemory, *, version: int = 9) -> list[str]:
    tickets = [shard.join(instance_id=name, version=version) for name in ("a", "b")]
    shard.pass_time(10_000)
    joined = [ticket.answer for ticket in tickets]
    shard.sync_all(joined)
    return [one.member_id for one in joined]


def test_a_static_member_returns_without_a_rebalance(shard: ShardInMemory) -> None:
    """CON-4: KIP-345."""
    old = static_group(shard)
    leader = shard.group.leader_id
    index = next(i for i, one in enumerate(old) if one != leader)
    back = shard.join(instance_id="ab"[index])
    assert back.code == 0
    assert back.answer.generation_id == 1
    assert back.answer.member_id != old[index]
    assert shard.group.state is State.STABLE
    share = shard.sync(back.answer.member_id, 1, instance_id="ab"[index])
    assert share.answer.assignment == old[index].encode()


@pytest.mark.parametrize("version", [8, 9])
def test_a_returning_static_leader_does_not_assign_again(version: int) -> None:
    shard = ShardInMemory()
    old = static_group(shard, version=version)
    leader = shard.group.leader_id
    name = "ab"[old.index(str(leader))]
    back = shard.join(instance_id=name, version=version).answer
    if version >= 9:
        assert (back.leader, back.skip_assignment, len(back.members)) == (back.member_id, True, 2)
    else:
        assert (back.leader, back.skip_assignment, len(back.members)) == (leader, False, 0)


def test_the_predecessor_of_a_static_member_is_fenced(shard: ShardInMemory) -> None:
    old = static_group(shard)
    shard.join(instance_id="a")
    assert shard.heartbeat(old[0], 1, "a") == FencedInstanceId.code
    assert shard.join(old[0], instance_id="a").code == FencedInstanceId.code
    assert shard.sync(old[0], 1, instance_id="a").code == FencedInstanceId.code
    assert shard.leave((old[0], "a"))[0].error_code == FencedInstanceId.code
    assert shard.commit(1, member_id=old[0], generation=1, instance_id="a") == (
        FencedInstanceId.code
    )


def test_a_static_member_is_removed_by_its_name(shard: ShardInMemory) -> None:
    old = static_group(shard)
    assert shard.leave(("", "a"))[0].error_code == 0
    assert old[0] not in shard.group.members


def test_a_returned_static_member_that_never_syncs_is_removed(shard: ShardInMemory) -> None:
    """Found by the simulation."""
    timeouts: Any = {"session_ms": 300_000, "rebalance_ms": 20_000}
    tickets = [shard.join(instance_id=name, **timeouts) for name in "ab"]
    shard.pass_time(10_000)
    joined = [ticket.answer for ticket in tickets]
    leader = joined[0].leader
    shard.sync(leader, 1, {leader: b"all"})
    silent = next(one for one in joined if one.member_id != leader)
    back = shard.join(instance_id="ab"[joined.index(silent)], **timeouts)
    shard.pass_time(20_000)
    assert back.answer.member_id not in shard.group.members


def test_absent_static_members_do_not_lose_their_place_in_a_rebalance(
    shard: ShardInMemory,
) -> None:
    tickets = [
        shard.join(instance_id=name, session_ms=300_000, rebalance_ms=20_000) for name in "ab"
    ]
    shard.pass_time(10_000)
    joined = [ticket.answer for ticket in tickets]
    shard.sync_all(joined)
    newcomer = shard.new_member(rebalance_ms=20_000)
    shard.join(joined[0].member_id, instance_id="a", session_ms=300_000, rebalance_ms=20_000)
    shard.pass_time(20_000)
    assert newcomer.code == 0
    assert joined[1].member_id in shard.group.members


def test_a_return_that_cannot_be_written_is_undone(shard: ShardInMemory) -> None:
    old = static_group(shard)
    shard.refusal = NotCoordinator("the disk is gone")
    back = shard.join(instance_id="a")
    assert back.code == NotCoordinator.code
    assert shard.group.static_ids["a"] == old[0]
    shard.refusal = None
    assert shard.heartbeat(old[0], 1, "a") == 0


# Surviving.


def test_a_group_survives_a_restart(shard: ShardInMemory) -> None:
    """CON-12: members go on in their generation with their shares."""
    joined = shard.stable_group(2)
    shard.reload()
    assert shard.group.state is State.STABLE
    for one in joined:
        assert shard.heartbeat(one.member_id, 1) == 0
        assert shard.sync(one.member_id, 1).answer.assignment == one.member_id.encode()
    assert shard.group.is_subscribed("orders")
    assert not shard.group.is_subscribed("bills")


def test_sessions_run_again_after_a_restart(shard: ShardInMemory) -> None:
    shard.stable_group(2)
    shard.reload()
    shard.pass_time(10_000)
    assert shard.group.state is State.EMPTY


def test_a_group_that_is_too_large_after_a_restart_rebalances(shard: ShardInMemory) -> None:
    joined = shard.stable_group(3, session_ms=60_000)
    shard.settings = BrokerSettings(group_max_size=2)
    shard.reload()
    shard.pass_time(0)
    assert shard.heartbeat(joined[0].member_id, 1) == RebalanceInProgress.code
    tickets = [shard.join(one.member_id) for one in joined]
    assert tickets[2].code == GroupMaxSizeReached.code
    shard.pass_time(60_000)
    assert len(shard.group.members) == 2


def test_waiting_requests_of_all_members_are_tracked(shard: ShardInMemory) -> None:
    """So that they can be sent elsewhere when the shard is given up."""
    tickets = [shard.new_member(), shard.new_member()]
    assert shard.state.tickets() == tickets
