"""Which partition a record goes to when its sender does not say.

A partitioner is any function `(topic, key, value, partitions) -> partition`. It sees the key and
the value as they were given to `send`. The partitioners that are only a name run inside of
librdkafka: `murmur2_random` is Java's default (equal keys meet in one partition, records without
a key fill one partition for a while and then move on), the others are librdkafka's own.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from headrace.errors import HeadraceError

Partitioner = Callable[[str, Any, Any, int], int]

JAVA_DEFAULT = "murmur2_random"
STICKY = "sticky"
ROUND_ROBIN = "roundrobin"


class InvalidPartition(HeadraceError, ValueError):
    """A record was to go to a partition that its topic does not have."""


def round_robin() -> Partitioner:
    """Each record to the partition after the last one's, whatever its key: a perfect spread."""
    turns: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)

    def partition_of(topic: str, _key: Any, _value: Any, partitions: int) -> int:
        return next(turns[topic]) % partitions

    return partition_of


def murmur2(key: bytes, partitions: int) -> int:
    """The partition that Java's default picks for a key: a building block for one's own."""
    from confluent_kafka import murmur2 as hashed

    return hashed(key, partitions)


def chosen(wish: Partitioner | str | None) -> tuple[str, Partitioner | None]:
    """What runs inside of librdkafka for a wish, and what must be asked before, if anything."""
    if wish is None or wish == STICKY:
        return JAVA_DEFAULT, None
    if wish == ROUND_ROBIN:
        return JAVA_DEFAULT, round_robin()
    if isinstance(wish, str):
        return wish, None
    return JAVA_DEFAULT, wish


def checked(partition: object, topic: str, partitions: int, source: str) -> int:
    """A partition that the topic has, or an error that says who was wrong."""
    if isinstance(partition, int) and 0 <= partition < partitions:
        return partition
    raise InvalidPartition(
        f"{source} {partition!r} for topic {topic!r}, which has partitions 0 to {partitions - 1}"
    )
