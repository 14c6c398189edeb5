"""Commits in the name of a consumer group: the members that may send them."""

from contextlib import nullcontext

import pytest

from headrace.errors import StaleMemberEpoch, UnknownMemberId, UnsupportedVersion
from headrace.groups import offsets
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.group import LateCommit
from tests.builders.consumer_groups import GROUP, GroupsInMemory, settle
from tests.builders.metadata_images import topic_id

ORDERS = topic_id("orders")


def moved_on() -> GroupsInMemory:
    """Ada had all six partitions in her first epoch, and three of them since."""
    groups = GroupsInMemory()
    groups.join("ada")
    groups.wait(2_000)
    groups.join("bob")
    settle(groups)
    return groups


def check_commit(group: ConsumerGroup, member_id: str, epoch: int) -> None:
    group.check_commit(member_id, None, epoch, is_transaction=False)


def test_a_member_commits_in_its_epoch() -> None:
    groups = moved_on()
    check_commit(groups.group, "ada", groups.group.members["ada"].epoch)


@pytest.mark.parametrize(("member_id", "epoch"), [("nobody", 3), ("", -1)])
def test_only_members_commit(member_id: str, epoch: int) -> None:
    with pytest.raises(UnknownMemberId):
        check_commit(moved_on().group, member_id, epoch)


def test_anyone_commits_for_an_empty_group() -> None:
    groups = moved_on()
    for member_id in ("ada", "bob"):
        groups.heartbeat(member_id, -1)
    check_commit(groups.group, "", -1)


def test_an_epoch_from_the_future_is_stale() -> None:
    """CON-10."""
    with pytest.raises(StaleMemberEpoch):
        check_commit(moved_on().group, "ada", 99)


def test_a_late_commit_counts_for_partitions_owned_throughout() -> None:
    """A commit that was under way when the epoch rose is not lost."""
    groups = moved_on()
    ada = groups.group.members["ada"]
    with pytest.raises(LateCommit) as late:
        check_commit(groups.group, "ada", ada.previous_epoch)
    kept = next(iter(ada.assigned[ORDERS]))
    late.value.check([("orders", ORDERS, kept)])
    lost = next(number for number in range(6) if number not in ada.assigned[ORDERS])
    with pytest.raises(StaleMemberEpoch):
        late.value.check([("orders", ORDERS, kept), ("orders", ORDERS, lost)])


def test_administrators_and_members_in_their_epoch_fetch_offsets() -> None:
    groups = moved_on()
    groups.group.check_fetch("", -1)
    groups.group.check_fetch("ada", groups.group.members["ada"].epoch)
    with pytest.raises(StaleMemberEpoch):
        groups.group.check_fetch("ada", 1)
    with pytest.raises(UnknownMemberId):
        groups.group.check_fetch("nobody", 1)


@pytest.mark.parametrize(("version", "is_new"), [(8, False), (9, True)])
def test_members_commit_with_a_version_that_has_epochs(version: int, is_new: bool) -> None:
    """As Kafka: an older one is refused in the right epoch too."""
    groups = moved_on()
    epoch = groups.group.members["ada"].epoch
    with nullcontext() if is_new else pytest.raises(UnsupportedVersion):
        offsets.check_commit(groups.state, GROUP, "ada", None, epoch, version=version)
