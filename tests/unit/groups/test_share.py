"""The share group protocol: joining, sharing, fencing, leaving, and the states behind it."""

import pytest

from headrace.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    NonEmptyGroup,
    UnknownMemberId,
)
from headrace.groups.classic.group import ClassicGroup
from headrace.groups.consumer.protocol import serve_heartbeat as serve_consumer_heartbeat
from headrace.groups.expiry import expire
from headrace.groups.offsets import delete_group
from headrace.groups.share.description import describe
from headrace.groups.share.protocol import share_group_or_new
from headrace.groups.share.records import StateTopics
from headrace.groups.share.states import alter, forget_all, forget_topics, forgotten, initialized
from headrace.metadata.image import ConfigResource, ResourceType
from headrace.protocol.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.protocol.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.builders.consumer_groups import HERE
from tests.builders.metadata_images import image_with, topic_id
from tests.builders.share_groups import GROUP, ShareGroupsInMemory, share_of

ORDERS, BILLS = topic_id("orders"), topic_id("bills")
_HOUR_MS = 3_600_000


def test_the_first_member_gets_everything_with_its_first_answer() -> None:
    """RMQ-1: every subscriber finds the queue."""
    groups = ShareGroupsInMemory()
    answer = groups.join("ada")
    assert share_of(answer) == {ORDERS: [0, 1, 2]}
    assert answer.member_epoch == groups.group.epoch == groups.group.assignment_epoch
    assert [place[:2] for place in groups.begun] == [(ORDERS, 0), (ORDERS, 1), (ORDERS, 2)]
    assert groups.group.state_name == "Stable"


def test_more_members_than_partitions_share_them() -> None:
    """PUL-3: everyone has work."""
    groups = ShareGroupsInMemory()
    for name in ("ada", "bob", "cat", "dan"):
        groups.join(name)
        groups.wait(1_001)
    shares = {}
    for name in ("ada", "bob", "cat", "dan"):
        groups.beat(name, groups.group.members[name].epoch)
        shares[name] = groups.group.members[name].assigned
    assert all(share for share in shares.values())
    assert {number for share in shares.values() for number in share[ORDERS]} == {0, 1, 2}


def test_the_usual_heartbeat_writes_nothing() -> None:
    groups = ShareGroupsInMemory()
    epoch = groups.join("ada").member_epoch
    groups.beat("ada", epoch)
    written = len(groups.log)
    answer = groups.beat("ada", epoch)
    assert (answer.assignment, answer.member_epoch, len(groups.log)) == (None, epoch, written)
    assert answer.heartbeat_interval_ms == 5_000


def test_changes_that_come_together_share_one_assignment() -> None:
    groups = ShareGroupsInMemory()
    groups.join("ada")
    groups.wait(10)
    answer = groups.join("bob")
    assert share_of(answer) == {}
    assert answer.heartbeat_interval_ms <= 1_000, "it is asked to come again soon"
    groups.wait(answer.heartbeat_interval_ms)
    assert share_of(groups.beat("bob", answer.member_epoch))


def test_epochs_that_are_not_a_members_own_are_fenced() -> None:
    groups = ShareGroupsInMemory()
    epoch = groups.join("ada").member_epoch
    with pytest.raises(FencedMemberEpoch, match="greater"):
        groups.beat("ada", epoch + 1)
    groups.wait(1_001)
    groups.join("bob")
    groups.wait(1_001)
    newer = groups.beat("ada", epoch).member_epoch
    assert newer > epoch
    assert groups.beat("ada", epoch).member_epoch == newer, "its last answer may have been lost"
    with pytest.raises(FencedMemberEpoch, match="smaller"):
        groups.beat("ada", epoch - 1)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (ShareGroupHeartbeatRequest(GROUP, "", 0, None, ["orders"]), "MemberId"),
        (ShareGroupHeartbeatRequest("", "ada", 0, None, ["orders"]), "GroupId"),
        (ShareGroupHeartbeatRequest(GROUP, "ada", 0, "", ["orders"]), "RackId"),
        (ShareGroupHeartbeatRequest(GROUP, "ada", 0), "SubscribedTopicNames"),
        (ShareGroupHeartbeatRequest(GROUP, "ada", 0, None, []), "SubscribedTopicNames"),
        (ShareGroupHeartbeatRequest(GROUP, "ada", -2), "MemberEpoch"),
    ],
)
def test_inconsistent_heartbeats_are_rejected(
    request_: ShareGroupHeartbeatRequest, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        ShareGroupsInMemory().send(request_)


def test_unknown_members_are_rejected() -> None:
    groups = ShareGroupsInMemory()
    with pytest.raises(GroupIdNotFound):
        groups.beat("ada", 1)
    groups.join("ada")
    with pytest.raises(UnknownMemberId):
        groups.beat("bob", 1)
    with pytest.raises(UnknownMemberId):
        groups.beat("bob", -1)


def test_a_full_group_accepts_no_other_member() -> None:
    groups = ShareGroupsInMemory(group_share_max_size=1)
    groups.join("ada")
    groups.join("ada")
    with pytest.raises(GroupMaxSizeReached):
        groups.join("bob")


def test_share_groups_and_consumer_groups_are_exclusive() -> None:
    groups = ShareGroupsInMemory()
    groups.join("ada")
    request = ConsumerGroupHeartbeatRequest(
        GROUP, "bob", 0, subscribed_topic_names=["orders"], topic_partitions=[]
    )
    with pytest.raises(GroupIdNotFound, match="not a consumer group"):
        serve_consumer_heartbeat(groups.state, request, HERE, groups.now_ms)
    with pytest.raises(GroupIdNotFound):
        groups.group.check_commit("ada", None, 1, is_transaction=False)
    with pytest.raises(GroupIdNotFound):
        groups.group.check_fetch("ada", 1)
    groups.state.groups[GROUP] = ClassicGroup(GROUP)
    with pytest.raises(GroupIdNotFound, match="not a share group"):
        groups.join("ada")


def test_partitions_of_a_departed_or_silent_member_are_reassigned() -> None:
    groups = ShareGroupsInMemory()
    groups.join("ada")
    groups.wait(1_001)
    groups.join("bob")
    groups.wait(1_001)
    groups.beat("ada", groups.group.members["ada"].epoch)
    groups.beat("bob", -1)
    groups.wait(1_001)
    assert share_of(groups.beat("ada", groups.group.members["ada"].epoch)) == {ORDERS: [0, 1, 2]}
    groups.wait(45_000)
    assert not groups.group.members
    assert groups.group.state_name == "Empty"


def test_heartbeats_keep_a_member_alive() -> None:
    groups = ShareGroupsInMemory()
    epoch = groups.join("ada").member_epoch
    for _ in range(20):
        groups.wait(5_000)
        epoch = groups.beat("ada", epoch).member_epoch
    assert "ada" in groups.group.members


def test_new_partitions_are_begun_and_shared_out() -> None:
    groups = ShareGroupsInMemory()
    epoch = groups.join("ada").member_epoch
    groups.wait(5_000)
    groups.image = image_with(topics={"orders": 5})
    assert share_of(groups.beat("ada", epoch)) == {ORDERS: [0, 1, 2, 3, 4]}
    assert [place[:2] for place in groups.begun[3:]] == [(ORDERS, 3), (ORDERS, 4)]


def test_a_topic_that_comes_later_is_shared_out_then() -> None:
    groups = ShareGroupsInMemory(image_with(topics={}))
    epoch = groups.join("ada").member_epoch
    groups.wait(5_000)
    groups.image = image_with(topics={"orders": 1})
    assert share_of(groups.beat("ada", epoch)) == {ORDERS: [0]}


def test_a_failed_initialization_of_states_delays_no_others() -> None:
    groups = ShareGroupsInMemory(image_with(topics={"orders": 1, "bills": 1}))
    epoch = groups.join("ada").member_epoch
    groups.wait(5_000)
    groups.begins_states = False
    answer = groups.beat("ada", epoch, subscribed_topic_names=["orders", "bills"])
    assert share_of(answer) == {ORDERS: [0]}
    groups.wait(5_000)
    groups.begins_states = True
    answer = groups.beat("ada", answer.member_epoch)
    assert share_of(answer) == {ORDERS: [0], BILLS: [0]}


def test_a_crash_between_the_steps_repeats_the_initialization() -> None:
    groups = ShareGroupsInMemory()
    groups.begins_states = False
    epoch = groups.join("ada").member_epoch
    groups.reload()
    assert groups.group.states.initializing
    groups.begins_states = True
    groups.wait(1_001)
    assert share_of(groups.beat("ada", epoch)) == {ORDERS: [0, 1, 2]}
    assert not groups.group.states.initializing


def test_the_log_gives_the_same_group_back() -> None:
    groups = ShareGroupsInMemory()
    groups.join("ada", rack_id="north")
    groups.wait(1_001)
    groups.join("bob")
    groups.wait(1_001)
    groups.beat("ada", groups.group.members["ada"].epoch)
    before = groups.group
    groups.reload()
    after = groups.group
    for field in ("epoch", "metadata_hash", "assignment_epoch", "members", "target", "states"):
        assert getattr(after, field) == getattr(before, field), field
    groups.wait(45_000)
    assert not groups.group.members, "sessions run on"


def test_settings_of_a_group_win_within_limits() -> None:
    groups = ShareGroupsInMemory()
    resource = ConfigResource(ResourceType.GROUP, GROUP)
    configs = {"share.heartbeat.interval.ms": "7000", "share.session.timeout.ms": "90000"}
    groups.image = type(groups.image)(
        topics=groups.image.topics,
        topics_by_id=groups.image.topics_by_id,
        configs={resource: configs},
    )
    assert groups.join("ada").heartbeat_interval_ms == 7_000
    assert groups.group.settings().session_timeout_ms == 60_000, "the broker's limit"


def test_a_group_is_described_with_its_members() -> None:
    groups = ShareGroupsInMemory()
    groups.join("ada")
    described = describe(groups.group, groups.image, "simple")
    (member,) = described.members
    (topic,) = member.assignment.topic_partitions
    assert (described.group_state, described.assignor_name) == ("Stable", "simple")
    assert (member.member_id, topic.topic_name, topic.partitions) == ("ada", "orders", [0, 1, 2])


# --- states, from outside -----------------------------------------------------------------------


def empty_group() -> ShareGroupsInMemory:
    groups = ShareGroupsInMemory(image_with(topics={"orders": 2, "bills": 1}))
    groups.join("ada", topics=("orders", "bills"))
    groups.beat("ada", -1)
    return groups


def test_offsets_are_altered_under_a_new_state_epoch() -> None:
    groups = empty_group()
    epoch = groups.group.epoch
    decision = alter(groups.state, groups.group, {ORDERS: {0: 7}}, groups.now_ms)
    alteration = groups.apply(decision)
    assert alteration.state_epoch > max(place[2] for place in groups.begun)
    assert groups.group.epoch == alteration.state_epoch == epoch + 1
    assert groups.group.states.initializing[ORDERS].partitions == {0}
    groups.apply(initialized(groups.state, GROUP, {ORDERS: frozenset({0})}))
    assert not groups.group.states.initializing


def test_offsets_of_a_group_that_was_never_there_can_be_altered() -> None:
    groups = ShareGroupsInMemory()
    new = share_group_or_new(groups.state, GROUP)
    groups.apply(alter(groups.state, new, {ORDERS: {0: 7}}, groups.now_ms))
    assert groups.group.state_name == "Empty"


def test_states_of_a_group_with_members_are_left_alone() -> None:
    groups = ShareGroupsInMemory()
    groups.join("ada")
    with pytest.raises(NonEmptyGroup):
        alter(groups.state, groups.group, {ORDERS: {0: 7}}, groups.now_ms)
    with pytest.raises(NonEmptyGroup):
        forget_topics(groups.group, ["orders"], groups.image)
    with pytest.raises(NonEmptyGroup):
        forget_all(groups.group, groups.image)
    with pytest.raises(NonEmptyGroup):
        delete_group(groups.state, GROUP)


def test_topics_are_forgotten_in_two_steps() -> None:
    groups = empty_group()
    names = ["orders", "nothing"]
    forgetting = groups.apply(forget_topics(groups.group, names, groups.image))
    assert forgetting.partitions == {ORDERS: frozenset({0, 1})}
    assert list(forgetting.unknown) == ["nothing"]
    groups.reload()
    assert list(groups.group.states.deleting) == [ORDERS], "a crash leaves it to be done again"
    again = groups.apply(forget_topics(groups.group, ["orders"], groups.image))
    assert again.partitions == forgetting.partitions
    groups.apply(forgotten(groups.state, GROUP, [ORDERS]))
    assert list(groups.group.states.initialized) == [BILLS]
    gone = groups.apply(forget_topics(groups.group, ["orders"], groups.image))
    assert list(gone.unknown) == ["orders"]


def test_a_group_is_deleted_with_all_its_states() -> None:
    groups = empty_group()
    forgetting = groups.apply(forget_all(groups.group, groups.image))
    assert forgetting.partitions == {ORDERS: frozenset({0, 1}), BILLS: frozenset({0})}
    groups.apply(forgotten(groups.state, GROUP, list(forgetting.partitions)))
    assert groups.group.states == StateTopics()
    groups.apply(delete_group(groups.state, GROUP))
    groups.reload()
    assert GROUP not in groups.state.groups


def test_a_deleted_topic_is_forgotten_by_its_groups() -> None:
    groups = empty_group()
    for effects in groups.state.on_topic_ids_deleted({ORDERS}):
        groups.apply(effects)
    assert list(groups.group.states.initialized) == [BILLS]


def test_an_empty_share_group_does_not_expire() -> None:
    groups = empty_group()
    groups.apply(expire(groups.state, groups.now_ms + 10_000 * _HOUR_MS))
    assert GROUP in groups.state.groups


def test_an_unwritten_decision_records_no_initialization() -> None:
    """Otherwise the states would not be initialized before the retry interval ends."""
    groups = ShareGroupsInMemory()
    groups.join("ada")
    groups.beat("ada", -1)
    before = dict(groups.group.memory.initializing_since_ms)
    alter(groups.state, groups.group, {ORDERS: {0: 7}}, groups.now_ms + 5)
    assert groups.group.memory.initializing_since_ms == before


def test_initializing_states_are_recorded_for_a_new_group() -> None:
    groups = ShareGroupsInMemory()
    new = share_group_or_new(groups.state, GROUP)
    groups.apply(alter(groups.state, new, {ORDERS: {0: 7}}, groups.now_ms))
    assert groups.group.memory.initializing_since_ms == {ORDERS: groups.now_ms}
