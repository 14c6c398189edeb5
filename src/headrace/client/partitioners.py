"""Partitioners: the choice of a partition for records without one.

A partitioner is any function `(topic, key, value, partitions) -> partition`. It receives the key
and the value as they were passed to `send`. Partitioners given by name run inside librdkafka.
`murmur2_random` is Java's default: equal keys share a partition, and records without a key stay in
one partition for a while. The others are librdkafka's own.
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
    """A record for a partition that its topic does not have."""


def round_robin() -> Partitioner:
    """Return a partitioner that uses the partitions in turn and ignores keys."""
    turns: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)

    def partition_of(topic: str, _key: Any, _value: Any, partitions: int) -> int:
        return next(turns[topic]) % partitions

    return partition_of


def murmur2(key: bytes, partitions: int) -> int:
    """Return the partition of Java's default partitioner for a key."""
    from confluent_kafka import murmur2 as hashed

    return hashed(key, partitions)


def chosen(given: Partitioner | str | None) -> tuple[str, Partitioner | None]:
    """Return the partitioner inside librdkafka, and the function to call before it, if any."""
    if given is None or given == STICKY:
        return JAVA_DEFAULT, None
    if given == ROUND_ROBIN:
        return JAVA_DEFAULT, round_robin()
    if isinstance(given, str):
        return given, None
    return JAVA_DEFAULT, given


def checked(partition: object, topic: str, partitions: int, source: str) -> int:
    """Return a valid partition, or raise an error that names its source."""
    if isinstance(partition, int) and 0 <= partition < partitions:
        return partition
    raise InvalidPartition(
        f"{source} {partition!r} for topic {topic!r}, which has partitions 0 to {partitions - 1}"
    )
