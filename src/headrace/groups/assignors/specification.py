"""What an assignor is told, and what it answers."""

from collections.abc import Callable, Mapping

import msgspec

from headrace.protocol.uuids import Uuid

Assignment = Mapping[Uuid, frozenset[int]]
"""Partitions by topic; a topic without partitions is left out."""


class MemberSpecification(msgspec.Struct, frozen=True):
    """A member as an assignor sees it: what it wants, and what it was to have so far."""

    topics: frozenset[Uuid]
    previous: Assignment = {}
    instance_id: str | None = None
    rack: str | None = None


class TopicSpecification(msgspec.Struct, frozen=True):
    """A topic as an assignor sees it; `racks` are those of each partition's replicas."""

    partitions: int
    racks: tuple[frozenset[str], ...] = ()


Assign = Callable[
    [Mapping[str, MemberSpecification], Mapping[Uuid, TopicSpecification]],
    dict[str, Assignment],
]
"""From members by id and topics by id to the share of every member.

Topics that members want but that are not given do not exist, and nobody gets any of them.
"""
