"""The simple assignor on any share group: everyone has work, nothing is left, little moves."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headrace.groups.assignors import MemberSpecification
from headrace.groups.assignors.simple import assign_simply
from headrace.protocol.uuids import Uuid

Members = dict[str, MemberSpecification]
Partitions = dict[Uuid, frozenset[int]]

TOPIC_IDS = [bytes([number]) * 16 for number in range(4)]

member_ids = st.lists(
    st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=9, unique=True
)
partition_maps = st.dictionaries(
    st.sampled_from(TOPIC_IDS), st.frozensets(st.integers(0, 12)), min_size=1
)
subscriptions = st.frozensets(st.sampled_from(TOPIC_IDS), min_size=1)


@st.composite
def alike(draw: st.DrawFn) -> tuple[Members, Partitions]:
    """Members that all want the same topics, and had any of them before."""
    wanted = draw(subscriptions)
    previous = st.dictionaries(st.sampled_from(TOPIC_IDS), st.frozensets(st.integers(0, 12)))
    members = {one: MemberSpecification(wanted, draw(previous)) for one in draw(member_ids)}
    return members, draw(partition_maps)


@st.composite
def unlike(draw: st.DrawFn) -> tuple[Members, Partitions]:
    members = {one: MemberSpecification(draw(subscriptions)) for one in draw(member_ids)}
    return members, draw(partition_maps)


@given(st.one_of(alike(), unlike()))
def test_each_subscribed_partition_is_assigned_only_to_its_subscribers(
    case: tuple[Members, Partitions],
) -> None:
    members, partitions = case
    shares = assign_simply(members, partitions)
    assert shares.keys() == members.keys()
    given_out = set()
    for member_id, share in shares.items():
        for topic_id, numbers in share.items():
            assert topic_id in members[member_id].topics
            assert numbers <= partitions[topic_id]
            given_out |= {(topic_id, number) for number in numbers}
    wanted = frozenset[Uuid]().union(*(one.topics for one in members.values()))
    assert given_out == {(one, each) for one in wanted for each in partitions.get(one, ())}


@given(st.one_of(alike(), unlike()))
def test_every_member_of_an_existing_topic_has_work(case: tuple[Members, Partitions]) -> None:
    members, partitions = case
    for member_id, share in assign_simply(members, partitions).items():
        has_any = any(partitions.get(topic_id) for topic_id in members[member_id].topics)
        assert bool(share) == has_any


@given(alike())
def test_work_is_shared_evenly(case: tuple[Members, Partitions]) -> None:
    """No partition has more members than it takes, and no member gets more than a fair share."""
    members, partitions = case
    shares = assign_simply(members, partitions)
    places = [(one, each) for share in shares.values() for one in share for each in share[one]]
    holders = Counter(places)
    if holders:
        sharing = -(-len(members) // len(holders))
        assert max(holders.values()) <= sharing
        fair = -(-sharing * len(holders) // len(members))
        assert max(sum(map(len, share.values())) for share in shares.values()) <= fair


@given(alike())
def test_without_a_change_nothing_moves(case: tuple[Members, Partitions]) -> None:
    members, partitions = case
    first = assign_simply(members, partitions)
    again = {one: MemberSpecification(members[one].topics, first[one]) for one in members}
    second = assign_simply(again, partitions)
    for member_id, share in first.items():
        for topic_id, numbers in share.items():
            assert numbers <= second[member_id].get(topic_id, frozenset())
