"""Offsets that a transaction commits for a group; their partitions are looked for beforehand.

librdkafka takes a partition that is not there for one that may still come, and asks until its time
is up. Who misspells a topic would wait for long, and then be told little.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Annotated

import msgspec
from confluent_kafka import TopicPartition
from msgspec import Meta

from headrace.client.admin import Admin
from headrace.errors import HeadraceError, UnknownTopicOrPartition, error_for
from headrace.rest.numbers import INT32_MAX
from headrace.rest.transactional import GroupOffsets, of_group

_APPEARS_WITHIN_S = 2.0
"""How long a topic that was made just now may take to be known to the broker that is asked."""
_LOOK_EVERY_S = 0.1
_INT64_MAX = (1 << 63) - 1

Name = Annotated[str, Meta(min_length=1, max_length=249, pattern=r"^[a-zA-Z0-9._-]+$")]
Partitions = Mapping[str, Collection[int]]
"""The partitions that topics have; a topic that is not there has none."""


class ReachedOffset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The offset that a group reads next in a partition."""

    topic_name: Name
    partition_id: Annotated[int, Meta(ge=0, le=INT32_MAX)]
    offset: Annotated[int, Meta(ge=0, le=_INT64_MAX)]


class ConsumerOffsets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    consumer_group_id: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^\S.*$")]
    offsets: Annotated[list[ReachedOffset], Meta(min_length=1, max_length=1_000)]

    def to_commit(self) -> GroupOffsets:
        reached = [
            TopicPartition(one.topic_name, one.partition_id, one.offset) for one in self.offsets
        ]
        return GroupOffsets(self.consumer_group_id, reached)


async def check_places(
    given: ConsumerOffsets,
    look: Callable[[Collection[str]], Awaitable[Partitions]],
    within_s: float = _APPEARS_WITHIN_S,
) -> None:
    """Refuse offsets of a partition that is not there, and does not appear soon."""
    topics = sorted({one.topic_name for one in given.offsets})
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    try:
        while missing := _missing(given.offsets, await look(topics)):
            if loop.time() >= deadline:
                raise missing
            await asyncio.sleep(_LOOK_EVERY_S)
    except HeadraceError as error:
        raise of_group(error, given.consumer_group_id) from error


def partitions_of(admin: Admin, topics: Collection[str]) -> Partitions:
    """Asked without making a topic by asking."""
    found: dict[str, list[int]] = {}
    for one in admin.cluster.metadata(topics).topics:
        if one.error_code not in (0, UnknownTopicOrPartition.code):
            raise error_for(one.error_code, f"topic {one.name!r} cannot be looked up")
        found[one.name or ""] = [partition.partition_index for partition in one.partitions]
    return found


def _missing(offsets: Iterable[ReachedOffset], there: Partitions) -> HeadraceError | None:
    """The first that has no place, named with what there is instead."""
    for one in offsets:
        partitions = there.get(one.topic_name, ())
        if not partitions:
            return UnknownTopicOrPartition(f"there is no topic {one.topic_name!r}")
        if one.partition_id not in partitions:
            return UnknownTopicOrPartition(
                f"topic {one.topic_name!r} has no partition {one.partition_id};"
                f" its partitions are 0 to {max(partitions)}"
            )
    return None
