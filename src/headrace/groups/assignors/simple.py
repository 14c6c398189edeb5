"""The simple assignor of share groups (KIP-932): every member and every partition is assigned.

Members of a share group may share a partition. Each partition gets as many members as necessary
for every member to have one, and members get equal numbers. Members keep their partitions as far
as possible, because a change of partition leader costs a session.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from headrace.groups.assignors.specification import Assignment, MemberSpecification
from headrace.protocol.uuids import Uuid

_TopicPartition = tuple[Uuid, int]


def assign_simply(
    members: Mapping[str, MemberSpecification], partitions: Mapping[Uuid, Collection[int]]
) -> dict[str, Assignment]:
    """Assign the partitions, together if all members subscribe to the same topics.

    With different subscriptions each topic is assigned separately among its subscribers.
    """
    shares: dict[str, set[_TopicPartition]] = {member_id: set() for member_id in members}
    for topics in _rounds(members, partitions):
        takers = [one for one, member in members.items() if member.topics >= topics]
        pool = [(one, number) for one in sorted(topics) for number in sorted(partitions[one])]
        previous = {one: _previous(members[one], partitions, topics) for one in takers}
        for member_id, share in _share_out(pool, previous).items():
            shares[member_id] |= share
    return {member_id: _by_topic(share) for member_id, share in shares.items()}


def _rounds(
    members: Mapping[str, MemberSpecification], partitions: Mapping[Uuid, Collection[int]]
) -> list[frozenset[Uuid]]:
    """The topics whose partitions are assigned together."""
    wanted = {member.topics for member in members.values()}
    existing = frozenset().union(*wanted) & partitions.keys()
    if len({topics & existing for topics in wanted}) == 1:
        return [frozenset(existing)] if existing else []
    return [frozenset({one}) for one in sorted(existing)]


def _previous(
    member: MemberSpecification,
    partitions: Mapping[Uuid, Collection[int]],
    topics: frozenset[Uuid],
) -> list[_TopicPartition]:
    return [
        (topic_id, number)
        for topic_id in sorted(topics)
        for number in sorted(member.previous.get(topic_id, ()))
        if number in partitions[topic_id]
    ]


def _share_out(
    pool: Sequence[_TopicPartition], previous: Mapping[str, Sequence[_TopicPartition]]
) -> dict[str, set[_TopicPartition]]:
    if not pool or not previous:
        return {}
    sharing = -(-len(previous) // len(pool))
    quotas = _quotas(sharing * len(pool), previous)
    holders: Counter[_TopicPartition] = Counter()
    shares = {one: _kept(previous[one], quotas[one], holders, sharing) for one in quotas}
    for member_id, share in shares.items():
        missing = quotas[member_id] - len(share)
        if missing:
            free = (one for one in pool if holders[one] < sharing and one not in share)
            taken = sorted(free, key=holders.__getitem__)[:missing]
            share.update(taken)
            holders.update(taken)
    return shares


def _quotas(slots: int, previous: Mapping[str, Sequence[_TopicPartition]]) -> dict[str, int]:
    """The quota of each member; members with the most partitions get the odd ones."""
    ordered = sorted(previous, key=lambda one: (-len(previous[one]), one))
    each, more = divmod(slots, len(ordered))
    return {one: each + (index < more) for index, one in enumerate(ordered)}


def _kept(
    previous: Iterable[_TopicPartition],
    quota: int,
    holders: Counter[_TopicPartition],
    sharing: int,
) -> set[_TopicPartition]:
    kept: set[_TopicPartition] = set()
    for one in sorted(previous, key=holders.__getitem__):
        if len(kept) == quota:
            break
        if holders[one] < sharing:
            kept.add(one)
            holders[one] += 1
    return kept


def _by_topic(share: Iterable[_TopicPartition]) -> Assignment:
    found: dict[Uuid, set[int]] = {}
    for topic_id, number in share:
        found.setdefault(topic_id, set()).add(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}
