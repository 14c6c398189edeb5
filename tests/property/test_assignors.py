"""Assignors on any group: everything is given once, evenly, and moves no more than it must."""

from collections.abc import Mapping

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headrace.groups.assignors import (
    ASSIGNORS,
    Assignment,
    MemberSpecification,
    TopicSpecification,
    assign_ranges,
    assign_uniformly,
)
from headrace.protocol.uuids import Uuid

Members = dict[str, MemberSpecification]
Topics = dict[Uuid, TopicSpecification]

TOPIC_IDS = [bytes([number]) * 16 for number in range(4)]
RACKS = ["north", "south", "west"]

topic_maps = st.dictionaries(
    st.sampled_from(TOPIC_IDS), st.integers(0, 12).map(TopicSpecification), min_size=1
)
member_ids = st.lists(
    st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=9, unique=True
)
subscriptions = st.frozensets(st.sampled_from(TOPIC_IDS))


@st.composite
def alike(draw: st.DrawFn) -> tuple[Members, Topics]:
    """Members that all want the same topics."""
    topics = draw(topic_maps)
    wanted = draw(subscriptions)
    return {one: MemberSpecification(wanted) for one in draw(member_ids)}, topics


@st.composite
def unlike(draw: st.DrawFn) -> tuple[Members, Topics]:
    """Members that want what they want."""
    members = {one: MemberSpecification(draw(subscriptions)) for one in draw(member_ids)}
    return members, draw(topic_maps)


@given(unlike(), st.sampled_from(sorted(ASSIGNORS)))
def test_each_wanted_partition_is_given_to_one_member_that_wants_it(
    case: tuple[Members, Topics], assignor: str
) -> None:
    """CON-3."""
    members, topics = case
    given_out = [
        (topic_id, number)
        for member_id, share in ASSIGNORS[assignor](members, topics).items()
        for topic_id, numbers in share.items()
        for number in numbers
        if topic_id in members[member_id].topics
    ]
    wanted = [
        (topic_id, number)
        for topic_id, topic in topics.items()
        for number in range(topic.partitions)
        if any(topic_id in member.topics for member in members.values())
    ]
    assert sorted(given_out) == sorted(wanted)


@given(alike())
def test_uniform_gives_equal_members_equal_loads(case: tuple[Members, Topics]) -> None:
    loads = sizes(assign_uniformly(*case)).values()
    assert max(loads) - min(loads) <= 1


@given(unlike())
def test_uniform_leaves_no_move_that_would_help(case: tuple[Members, Topics]) -> None:
    members, topics = case
    shares = assign_uniformly(members, topics)
    loads = sizes(shares)
    for owner, share in shares.items():
        for topic_id in share:
            others = [one for one, member in members.items() if topic_id in member.topics]
            assert all(loads[other] >= loads[owner] - 1 for other in others)


@given(unlike())
def test_uniform_keeps_its_own_assignment(case: tuple[Members, Topics]) -> None:
    members, topics = case
    shares = assign_uniformly(members, topics)
    assert assign_uniformly(with_previous(members, shares), topics) == shares


@given(alike(), st.data())
def test_uniform_moves_only_partitions_that_balance_requires(
    case: tuple[Members, Topics], data: st.DataObject
) -> None:
    """After a member has left, the others keep all they had."""
    members, topics = case
    shares = assign_uniformly(members, topics)
    gone = data.draw(st.sampled_from(sorted(members)))
    rest = {one: member for one, member in with_previous(members, shares).items() if one != gone}
    for member_id, share in assign_uniformly(rest, topics).items():
        for topic_id, numbers in shares[member_id].items():
            assert numbers <= share.get(topic_id, frozenset())


@given(alike())
def test_uniform_gives_a_new_member_its_part_and_moves_nothing_between_the_others(
    case: tuple[Members, Topics],
) -> None:
    """CON-4."""
    members, topics = case
    shares = assign_uniformly(members, topics)
    newcomer = {"new": MemberSpecification(next(iter(members.values())).topics)}
    after = assign_uniformly({**with_previous(members, shares), **newcomer}, topics)
    for member_id, share in shares.items():
        for topic_id, numbers in after[member_id].items():
            assert numbers <= share.get(topic_id, frozenset())


@given(alike(), st.data())
def test_uniform_with_racks_is_as_even_as_without(
    case: tuple[Members, Topics], data: st.DataObject
) -> None:
    members, topics = case
    racks = st.one_of(st.none(), st.sampled_from(RACKS))
    placed = {
        one: msgspec.structs.replace(member, rack=data.draw(racks))
        for one, member in members.items()
    }
    spread = {one: with_racks(topic, data) for one, topic in topics.items()}
    loads = sizes(assign_uniformly(placed, spread)).values()
    assert max(loads) - min(loads) <= 1


def test_uniform_gives_partitions_to_members_in_their_rack() -> None:
    topic_id = TOPIC_IDS[0]
    racks = tuple(frozenset({RACKS[number % 3]}) for number in range(9))
    members = {
        rack: MemberSpecification(frozenset({topic_id}), rack=rack) for rack in reversed(RACKS)
    }
    shares = assign_uniformly(members, {topic_id: TopicSpecification(9, racks)})
    assert shares == {rack: {topic_id: frozenset({0, 3, 6})} for rack in RACKS[:1]} | {
        "south": {topic_id: frozenset({1, 4, 7})},
        "west": {topic_id: frozenset({2, 5, 8})},
    }


@given(alike())
def test_range_gives_runs_that_differ_by_one_at_most(case: tuple[Members, Topics]) -> None:
    shares = assign_ranges(*case)
    for topic_id in case[1]:
        runs = [sorted(share.get(topic_id, ())) for share in shares.values()]
        assert all(run == list(range(run[0], run[-1] + 1)) for run in runs if run)
        if any(runs):
            assert max(map(len, runs)) - min(map(len, runs)) <= 1


@given(member_ids, st.integers(1, 12))
def test_range_gives_equal_topics_alike(ids: list[str], partitions: int) -> None:
    """Records of one key meet in one member."""
    both = frozenset(TOPIC_IDS[:2])
    members = {one: MemberSpecification(both) for one in ids}
    shares = assign_ranges(members, dict.fromkeys(TOPIC_IDS[:2], TopicSpecification(partitions)))
    for share in shares.values():
        assert share.get(TOPIC_IDS[0]) == share.get(TOPIC_IDS[1])


def sizes(shares: Mapping[str, Assignment]) -> dict[str, int]:
    return {one: sum(map(len, share.values())) for one, share in shares.items()}


def with_previous(members: Members, shares: Mapping[str, Assignment]) -> Members:
    return {
        one: msgspec.structs.replace(member, previous=shares[one])
        for one, member in members.items()
    }


def with_racks(topic: TopicSpecification, data: st.DataObject) -> TopicSpecification:
    racks = st.lists(
        st.frozensets(st.sampled_from(RACKS)),
        min_size=topic.partitions,
        max_size=topic.partitions,
    )
    return TopicSpecification(topic.partitions, tuple(data.draw(racks)))
