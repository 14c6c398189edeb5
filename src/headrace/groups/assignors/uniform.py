"""The uniform assignor: balanced assignments with as few moves as possible.

Members with equal subscriptions differ by at most one partition. With different subscriptions no
single move of a partition could bring two members closer together. Members keep their previous
partitions up to their quota. Among partitions to assign or revoke, those with a replica in the
member's rack are preferred; balance and stickiness come first.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.groups.assignors.specification import (
    Assignment,
    MemberSpecification,
    TopicSpecification,
)
from headrace.protocol.uuids import Uuid


class _Partition(NamedTuple):
    topic_id: Uuid
    number: int


_Members = Mapping[str, MemberSpecification]
_Topics = Mapping[Uuid, TopicSpecification]
_Shares = dict[str, list[_Partition]]


def assign_uniformly(members: _Members, topics: _Topics) -> dict[str, Assignment]:
    """Balance the partitions over the members that subscribe to them."""
    if not members:
        return {}
    shares = _kept(members, topics)
    subscriptions = {frozenset(member.topics & topics.keys()) for member in members.values()}
    if len(subscriptions) == 1:
        _fill_quotas(shares, members, topics)
    else:
        _fill_unlike(shares, members, topics)
    return {member_id: _by_topic(share) for member_id, share in shares.items()}


def _kept(members: _Members, topics: _Topics) -> _Shares:
    """The partitions each member may keep: subscribed, existing and exclusive."""
    taken: set[_Partition] = set()
    shares: _Shares = {}
    for member_id in sorted(members):
        member = members[member_id]
        share = [
            _Partition(topic_id, index)
            for topic_id in sorted(member.previous.keys() & member.topics & topics.keys())
            for index in sorted(member.previous[topic_id])
            if index < topics[topic_id].partitions
        ]
        shares[member_id] = [partition for partition in share if partition not in taken]
        taken.update(share)
    return shares


def _fill_quotas(shares: _Shares, members: _Members, topics: _Topics) -> None:
    """Reduce members with equal subscriptions to their quota, then assign the free partitions."""
    wanted = next(iter(members.values())).topics & topics.keys()
    every = _partitions(wanted, topics)
    quotas = _quotas(shares, len(every))
    for member_id, share in shares.items():
        _near_first(share, members[member_id], topics)
        del share[quotas[member_id] :]
    taken = {partition for share in shares.values() for partition in share}
    free = [partition for partition in every if partition not in taken]
    free = _deal_near(free, shares, quotas, members, topics)
    _deal(free, shares, quotas)


def _quotas(shares: _Shares, total: int) -> dict[str, int]:
    """The number of partitions of each member; members with more partitions keep the odd ones."""
    least, odd = divmod(total, len(shares))
    by_size = sorted(shares, key=lambda member_id: -len(shares[member_id]))
    return {member_id: least + (place < odd) for place, member_id in enumerate(by_size)}


def _near_first(share: list[_Partition], member: MemberSpecification, topics: _Topics) -> None:
    if member.rack is not None:
        share.sort(key=lambda partition: (not _is_near(partition, member, topics), partition))


def _deal_near(
    free: list[_Partition],
    shares: _Shares,
    quotas: Mapping[str, int],
    members: _Members,
    topics: _Topics,
) -> list[_Partition]:
    """Give partitions to members in the same rack, the least loaded first; return the others."""
    by_rack: dict[str, list[str]] = {}
    for member_id, member in members.items():
        if member.rack is not None:
            by_rack.setdefault(member.rack, []).append(member_id)
    if not by_rack:
        return free
    rest = []
    for partition in free:
        near = [
            member_id
            for rack in _racks(partition, topics)
            for member_id in by_rack.get(rack, ())
            if len(shares[member_id]) < quotas[member_id]
        ]
        if near:
            emptiest = min(near, key=lambda member_id: (len(shares[member_id]), member_id))
            shares[emptiest].append(partition)
        else:
            rest.append(partition)
    return rest


def _deal(free: Iterable[_Partition], shares: _Shares, quotas: Mapping[str, int]) -> None:
    """Deal the partitions in turn, so that each topic is spread over many members."""
    remaining = iter(free)
    hungry = [member_id for member_id in shares if len(shares[member_id]) < quotas[member_id]]
    while hungry:
        for member_id, partition in zip(hungry, remaining, strict=False):
            shares[member_id].append(partition)
        hungry = [member_id for member_id in hungry if len(shares[member_id]) < quotas[member_id]]


def _fill_unlike(shares: _Shares, members: _Members, topics: _Topics) -> None:
    """Different subscriptions: the scarcest topics first, then move until no move helps."""
    takers = _takers(members, topics)
    taken = {partition for share in shares.values() for partition in share}
    every = _partitions(takers, topics)
    for partition in sorted(every, key=lambda one: len(takers[one.topic_id])):
        if partition not in taken:
            able = takers[partition.topic_id]
            shares[_emptiest(able, partition, shares, members, topics)].append(partition)
    while any(_lighten(member_id, shares, takers) for member_id in list(shares)):
        pass  # Every move lowers the sum of squares of the loads, so this ends.


def _takers(members: _Members, topics: _Topics) -> dict[Uuid, list[str]]:
    takers: dict[Uuid, list[str]] = {}
    for member_id in sorted(members):
        for topic_id in members[member_id].topics & topics.keys():
            takers.setdefault(topic_id, []).append(member_id)
    return takers


def _emptiest(
    able: list[str], partition: _Partition, shares: _Shares, members: _Members, topics: _Topics
) -> str:
    return min(
        able,
        key=lambda one: (len(shares[one]), not _is_near(partition, members[one], topics), one),
    )


def _lighten(member_id: str, shares: _Shares, takers: Mapping[Uuid, list[str]]) -> bool:
    """Move partitions to members with at least two fewer; return whether any moved."""
    share = shares[member_id]
    count = len(share)
    for topic_id in sorted({partition.topic_id for partition in share}):
        emptiest = min(takers[topic_id], key=lambda one: len(shares[one]))
        movable = [partition for partition in share if partition.topic_id == topic_id]
        while movable and len(shares[emptiest]) + 2 <= len(share):
            partition = movable.pop()
            share.remove(partition)
            shares[emptiest].append(partition)
            emptiest = min(takers[topic_id], key=lambda one: len(shares[one]))
    return len(share) < count


def _partitions(topic_ids: Iterable[Uuid], topics: _Topics) -> list[_Partition]:
    return [
        _Partition(topic_id, index)
        for topic_id in sorted(topic_ids)
        for index in range(topics[topic_id].partitions)
    ]


def _racks(partition: _Partition, topics: _Topics) -> frozenset[str]:
    racks = topics[partition.topic_id].racks
    return racks[partition.number] if partition.number < len(racks) else frozenset()


def _is_near(partition: _Partition, member: MemberSpecification, topics: _Topics) -> bool:
    return member.rack is not None and member.rack in _racks(partition, topics)


def _by_topic(share: Iterable[_Partition]) -> Assignment:
    indexes: dict[Uuid, set[int]] = {}
    for topic_id, index in share:
        indexes.setdefault(topic_id, set()).add(index)
    return {topic_id: frozenset(found) for topic_id, found in indexes.items()}
