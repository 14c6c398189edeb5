"""Offsets that a transaction commits for a group, with a check of their partitions.

librdkafka retries the lookup of a missing partition until its timeout, so a misspelt topic would
cause a long wait and an unclear error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Annotated

import msgspec
from confluent_kafka import TopicPartition
from msgspec import Meta

from headrace.client.admin import Admin
from headrace.errors import HeadraceError, UnknownTopicOrPartition, error_for
from headrace.rest.numbers import Int32, Int64
from headrace.rest.transactional import GroupOffsets, of_group

_APPEARS_WITHIN_S = 2.0
"""Time limit for a new topic to become visible at a broker."""
_LOOK_EVERY_S = 0.1

Name = Annotated[str, Meta(min_length=1, max_length=249, pattern=r"^[a-zA-Z0-9._-]+$")]
Partitions = Mapping[str, Collection[int]]
"""Partitions by topic; missing topics have none."""


class ReachedOffset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The next offset of a group in a partition."""

    topic_name: Name
    partition_id: Int32
    offset: Int64


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
    """Raise an error for offsets of a partition that does not appear soon."""
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
    """Read the partitions of topics without creating them."""
    found: dict[str, list[int]] = {}
    for one in admin.cluster.metadata(topics).topics:
        if one.error_code not in (0, UnknownTopicOrPartition.code):
            raise error_for(one.error_code, f"lookup of topic {one.name!r} failed")
        found[one.name or ""] = [partition.partition_index for partition in one.partitions]
    return found


def _missing(offsets: Iterable[ReachedOffset], there: Partitions) -> HeadraceError | None:
    """Return the error for the first missing partition."""
    for one in offsets:
        partitions = there.get(one.topic_name, ())
        if not partitions:
            return UnknownTopicOrPartition(f"topic {one.topic_name!r} does not exist")
        if one.partition_id not in partitions:
            return UnknownTopicOrPartition(
                f"topic {one.topic_name!r} has no partition {one.partition_id};"
                f" its partitions are 0 to {max(partitions)}"
            )
    return None
