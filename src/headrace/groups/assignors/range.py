"""The range assignor: each topic's partitions in runs, in the order of the members.

Members with the same topics get the same partition numbers of each, so records with the same key
in topics of equal size reach one member (co-partitioning). This is its purpose, hence it moves
partitions when it must, and ignores racks.
"""

from collections.abc import Mapping

from headrace.groups.assignors.specification import (
    Assignment,
    MemberSpecification,
    TopicSpecification,
)
from headrace.protocol.uuids import Uuid


def assign_ranges(
    members: Mapping[str, MemberSpecification], topics: Mapping[Uuid, TopicSpecification]
) -> dict[str, Assignment]:
    """Assign every member a run of each of its topics; the first members get the remainder."""
    shares: dict[str, dict[Uuid, frozenset[int]]] = {member_id: {} for member_id in members}
    ordered = sorted(members, key=lambda member_id: _place(member_id, members[member_id]))
    for topic_id, topic in topics.items():
        takers = [member_id for member_id in ordered if topic_id in members[member_id].topics]
        start = 0
        for index, member_id in enumerate(takers):
            size = topic.partitions // len(takers) + (index < topic.partitions % len(takers))
            if size:
                shares[member_id][topic_id] = frozenset(range(start, start + size))
            start += size
    return dict(shares)


def _place(member_id: str, member: MemberSpecification) -> tuple[bool, str]:
    """Static members first, by the name that survives their restart."""
    if member.instance_id is None:
        return True, member_id
    return False, member.instance_id
