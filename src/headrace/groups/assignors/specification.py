"""The input and output of an assignor."""

from collections.abc import Callable, Mapping

import msgspec

from headrace.protocol.uuids import Uuid

Assignment = Mapping[Uuid, frozenset[int]]
"""Partitions by topic; a topic without partitions is left out."""


class MemberSpecification(msgspec.Struct, frozen=True):
    """A member for an assignor: its subscription and its current target."""

    topics: frozenset[Uuid]
    previous: Assignment = {}
    instance_id: str | None = None
    rack: str | None = None


class TopicSpecification(msgspec.Struct, frozen=True):
    """A topic for an assignor; `racks` are the racks of each partition's replicas."""

    partitions: int
    racks: tuple[frozenset[str], ...] = ()


Assign = Callable[
    [Mapping[str, MemberSpecification], Mapping[Uuid, TopicSpecification]],
    dict[str, Assignment],
]
"""From members by id and topics by id to the share of every member.

Subscribed topics that are not in the second argument do not exist and are not assigned.
"""
