"""The consumer group protocol: joining, reconciling, leaving, fencing."""

from typing import Any

import pytest

from headrace.coordination.effects import Effects
from headrace.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRegularExpression,
    InvalidRequest,
    KafkaError,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from headrace.groups.epochs.members import MemberState
from tests.builders.consumer_groups import GROUP, GroupsInMemory, assigned_by, request_of, settle
from tests.builders.metadata_images import image_with, topic_id

ORDERS = topic_id("orders")
ALL = {ORDERS: {0, 1, 2, 3, 4, 5}}


@pytest.fixture
def groups() -> GroupsInMemory:
    return GroupsInMemory()


def two_members() -> GroupsInMemory:
    """Ada and Bob, three partitions each."""
    groups = GroupsInMemory()
    groups.join("ada")
    groups.wait(2_000)
    groups.join("bob")
    settle(groups)
    return groups


def owned_by(groups: GroupsInMemory, member_id: str) -> set[int]:
    return set(groups.group.members[member_id].assigned.get(ORDERS, {}))


def test_the_first_member_gets_everything_at_once(groups: GroupsInMemory) -> None:
    """CON-3."""
    answer = groups.join("ada")
    assert assigned_by(answer) == ALL
    assert answer.member_epoch == groups.group.epoch == groups.group.assignment_epoch
    assert groups.group.state_name == "Stable"


def test_a_second_member_waits_until_the_first_has_given_up_its_half(
    groups: GroupsInMemory,
) -> None:
    """CON-4: only what moves stops."""
    first = groups.join("ada")
    groups.wait(2_000)
    second = groups.join("bob")
    assert assigned_by(second) == {}
    assert groups.group.members["bob"].state is MemberState.UNRELEASED

    told = groups.heartbeat("ada", first.member_epoch, {"orders": range(6)})
    kept = assigned_by(told)
    assert kept is not None
    assert len(kept[ORDERS]) == 3
    assert told.member_epoch == first.member_epoch
    assert groups.group.members["ada"].state is MemberState.UNREVOKED

    done = groups.heartbeat("ada", told.member_epoch, {"orders": kept[ORDERS]})
    assert done.member_epoch == groups.group.epoch
    given = assigned_by(groups.heartbeat("bob", second.member_epoch))
    assert given == {ORDERS: ALL[ORDERS] - kept[ORDERS]}
    assert groups.group.state_name == "Stable"


def test_a_usual_heartbeat_writes_nothing() -> None:
    groups = two_members()
    groups.heartbeat("ada", groups.group.members["ada"].epoch)
    length = len(groups.log)
    answer = groups.heartbeat("ada", groups.group.members["ada"].epoch)
    assert answer.assignment is None
    assert len(groups.log) == length


def test_a_member_that_leaves_gives_its_partitions_back() -> None:
    """CON-4."""
    groups = two_members()
    groups.heartbeat("bob", -1)
    groups.wait(2_000)
    settle(groups)
    assert owned_by(groups, "ada") == ALL[ORDERS]


def test_a_silent_member_is_removed_after_its_session() -> None:
    """CON-10."""
    groups = two_members()
    groups.wait(44_000)
    groups.heartbeat("ada", groups.group.members["ada"].epoch)
    groups.wait(1_001)
    assert set(groups.group.members) == {"ada"}
    with pytest.raises(UnknownMemberId):
        groups.heartbeat("bob", 3)


def test_a_member_that_does_not_revoke_in_time_is_removed(groups: GroupsInMemory) -> None:
    first = groups.join("ada", rebalance_timeout_ms=10_000)
    groups.wait(2_000)
    groups.join("bob")
    groups.heartbeat("ada", first.member_epoch)
    groups.wait(10_001)
    assert set(groups.group.members) == {"bob"}


def test_many_joins_share_one_assignment(groups: GroupsInMemory) -> None:
    """Within the assignment interval a new member gets nothing, and a short heartbeat interval."""
    groups.join("ada")
    answer = groups.join("bob")
    assert groups.group.state_name == "Assigning"
    assert 0 < answer.heartbeat_interval_ms <= 1_001
    groups.join("cyd")
    epoch = groups.group.assignment_epoch
    groups.wait(1_001)
    settle(groups)
    assert epoch + 2 == groups.group.assignment_epoch
    assert [len(owned_by(groups, name)) for name in ("ada", "bob", "cyd")] == [2, 2, 2]


def test_a_lost_answer_may_be_requested_again() -> None:
    groups = two_members()
    ada = groups.group.members["ada"]
    again = groups.heartbeat(
        "ada",
        ada.previous_epoch,
        {"orders": ()},
        subscribed_topic_names=["orders"],
        rebalance_timeout_ms=60_000,
    )
    assert again.member_epoch == ada.epoch
    assert assigned_by(again) == {ORDERS: owned_by(groups, "ada")}


def test_the_previous_epoch_is_fenced_with_partitions_of_others() -> None:
    groups = two_members()
    previous = groups.group.members["ada"].previous_epoch
    with pytest.raises(FencedMemberEpoch, match="smaller"):
        groups.heartbeat("ada", previous, {"orders": range(6)})


def test_an_epoch_ahead_of_the_group_is_fenced() -> None:
    groups = two_members()
    with pytest.raises(FencedMemberEpoch, match="greater"):
        groups.heartbeat("ada", 99)


def test_a_static_member_returns_to_its_partitions(groups: GroupsInMemory) -> None:
    first = groups.join("ada", instance_id="desk-1")
    epoch = groups.group.epoch
    groups.heartbeat("ada", -2, instance_id="desk-1")
    assert groups.group.members["ada"].epoch == -2
    again = groups.join("bea", instance_id="desk-1")
    assert assigned_by(again) == assigned_by(first)
    assert groups.group.epoch == epoch
    assert set(groups.group.members) == {"bea"}


def test_a_static_member_that_does_not_return_loses_its_partitions(
    groups: GroupsInMemory,
) -> None:
    groups.join("ada", instance_id="desk-1")
    groups.heartbeat("ada", -2, instance_id="desk-1")
    groups.wait(45_001)
    assert not groups.group.members
    assert groups.group.state_name == "Empty"


def test_an_instance_id_in_use_is_not_released(groups: GroupsInMemory) -> None:
    groups.join("ada", instance_id="desk-1")
    with pytest.raises(UnreleasedInstanceId):
        groups.join("bea", instance_id="desk-1")


def test_a_replaced_static_member_is_fenced(groups: GroupsInMemory) -> None:
    groups.join("ada", instance_id="desk-1")
    groups.heartbeat("ada", -2, instance_id="desk-1")
    epoch = groups.join("bea", instance_id="desk-1").member_epoch
    with pytest.raises(FencedInstanceId):
        groups.heartbeat("ada", epoch, instance_id="desk-1")


def test_new_partitions_are_shared_out() -> None:
    groups = two_members()
    groups.image = image_with(topics={"orders": 8})
    groups.wait(2_000)
    settle(groups)
    assert len(owned_by(groups, "ada")) == len(owned_by(groups, "bob")) == 4


def test_a_topic_that_comes_later_is_assigned(groups: GroupsInMemory) -> None:
    answer = groups.join("ada", ["orders", "later"])
    groups.image = image_with(topics={"orders": 6, "later": 1})
    groups.wait(2_000)
    told = groups.heartbeat("ada", answer.member_epoch, {"orders": range(6)})
    assert assigned_by(told) == {**ALL, topic_id("later"): {0}}


def test_a_deleted_topic_is_taken_away(groups: GroupsInMemory) -> None:
    groups.image = image_with(topics={"orders": 6, "old": 2})
    answer = groups.join("ada", ["orders", "old"])
    groups.image = image_with(topics={"orders": 6})
    groups.wait(2_000)
    told = groups.heartbeat("ada", answer.member_epoch, {"orders": range(6)})
    assert assigned_by(told) == ALL


def test_a_pattern_subscribes_to_new_topics_that_match(groups: GroupsInMemory) -> None:
    """CON-1."""
    answer = groups.join("ada", subscribed_topic_names=None, subscribed_topic_regex="ord.*")
    assert assigned_by(answer) == ALL
    groups.image = image_with(topics={"orders": 6, "ordinary": 1, "other": 1})
    groups.wait(2_000)
    told = groups.heartbeat("ada", answer.member_epoch)
    assert assigned_by(told) == {**ALL, topic_id("ordinary"): {0}}


def test_an_unsubscribed_topic_is_taken_back_before_the_next_assignment() -> None:
    groups = GroupsInMemory(image_with(topics={"orders": 6, "bills": 1}))
    answer = groups.join("ada", ["orders", "bills"])
    told = groups.heartbeat("ada", answer.member_epoch, subscribed_topic_names=["bills"])
    assert assigned_by(told) == {topic_id("bills"): {0}}


def test_the_assignor_that_most_members_ask_for_is_used() -> None:
    groups = GroupsInMemory(image_with(topics={"orders": 6, "bills": 6}))
    for member_id in ("ada", "bob"):
        groups.join(member_id, ["orders", "bills"], server_assignor="range")
        groups.wait(2_000)
    settle(groups)
    ada = groups.group.members["ada"].assigned
    assert set(ada[ORDERS]) == set(ada[topic_id("bills")]) == {0, 1, 2}


def test_the_log_makes_the_same_group_again() -> None:
    """CON-6: state survives a restart."""
    groups = two_members()
    groups.join("cyd", instance_id="desk-1")
    groups.heartbeat("ada", groups.group.members["ada"].epoch)
    before = groups.group
    groups.reload()
    assert groups.group.members == before.members
    assert groups.group.target == before.target
    assert groups.group.owners == before.owners
    assert groups.group.epoch == before.epoch
    assert groups.group.static_members == before.static_members


def test_the_tombstones_of_a_group_leave_nothing() -> None:
    groups = two_members()
    groups.apply(Effects(records=groups.group.tombstones()))
    assert GROUP not in groups.state.groups
    groups.reload()
    assert GROUP not in groups.state.groups


@pytest.mark.parametrize(
    ("member_id", "epoch", "owned", "fields", "error"),
    [
        ("", 1, None, {}, InvalidRequest),
        ("ada", 1, None, {"instance_id": ""}, InvalidRequest),
        ("ada", 1, None, {"rack_id": " "}, InvalidRequest),
        ("ada", -3, None, {}, InvalidRequest),
        ("ada", -2, None, {}, InvalidRequest),
        ("ada", 0, {}, {"subscribed_topic_names": ["orders"]}, InvalidRequest),
        ("ada", 0, {"orders": [1]}, {"rebalance_timeout_ms": 1}, InvalidRequest),
        ("ada", 0, {}, {"rebalance_timeout_ms": 1}, InvalidRequest),
        ("ada", 1, None, {"server_assignor": "mine"}, UnsupportedAssignor),
        ("ada", 1, None, {}, GroupIdNotFound),
        ("ada", -1, None, {}, GroupIdNotFound),
        (
            "ada",
            0,
            {},
            {"rebalance_timeout_ms": 1, "subscribed_topic_regex": "(a"},
            InvalidRegularExpression,
        ),
    ],
)
def test_inconsistent_heartbeats_are_rejected(
    groups: GroupsInMemory,
    member_id: str,
    epoch: int,
    owned: dict[str, list[int]] | None,
    fields: dict[str, Any],
    error: type[KafkaError],
) -> None:
    with pytest.raises(error):
        groups.send(request_of(member_id, epoch, owned, **fields))
    assert groups.log == []


def test_a_group_may_be_full() -> None:
    groups = GroupsInMemory(group_consumer_max_size=1)
    groups.join("ada")
    with pytest.raises(GroupMaxSizeReached):
        groups.join("bob")


def test_an_old_client_is_given_an_id(groups: GroupsInMemory) -> None:
    request = request_of("", 0, {}, subscribed_topic_names=["orders"], rebalance_timeout_ms=1)
    assert groups.send(request, version=0).member_id
