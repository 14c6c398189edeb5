"""Positions in topics, and their JSON in options and in Spark's checkpoints.

The JSON is the stock connector's: `{"topic": {"0": 12}}`. In options -2 is the earliest and -1 the
latest offset; checkpoints have real offsets only.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.protocol.topic_partition import TopicPartition
from headrace.spark.source.errors import InvalidOption

EARLIEST = -2
LATEST = -1
BY_TIMESTAMP = "ByTimestamp"
"""The suffix of options with times instead of offsets."""
_WORDS = {"startingOffsets": "earliest, latest or ", "endingOffsets": "latest or "}
"""The alternatives to JSON."""


Positions = dict[TopicPartition, int]
"""The next offset to read in each partition."""


def from_spark(kept: Mapping[str, Mapping[str, int]]) -> Positions:
    """Parse positions from Spark, where partition numbers are strings."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in kept.items()
        for partition, offset in partitions.items()
    }


def to_spark(positions: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Format positions for Spark, in a fixed order."""
    kept: dict[str, dict[str, int]] = {}
    for place in sorted(positions):
        kept.setdefault(place.topic, {})[str(place.partition)] = positions[place]
    return kept


def parse_numbers(option: str, text: str) -> Positions:
    """Parse `{"topic": {"0": 12}}` of an option: offsets, or timestamps in milliseconds."""
    try:
        read = json.loads(text)
        return {
            TopicPartition(topic, int(partition)): _integer(number)
            for topic, partitions in read.items()
            for partition, number in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise InvalidOption(
            f"{option} is {text!r}; it must be {_WORDS.get(option, '')}JSON such as"
            f" {_example(option)}"
        ) from None


def parse_partitions(option: str, text: str) -> tuple[TopicPartition, ...]:
    """Parse `{"topic": [0, 1]}`, the partitions of `assign`."""
    try:
        read = json.loads(text)
        found = [
            TopicPartition(topic, _integer(partition))
            for topic, partitions in read.items()
            for partition in partitions
        ]
    except (ValueError, AttributeError, TypeError):
        found = []
    if not found:
        raise InvalidOption(
            f'{option} is {text!r}; it must be JSON such as {{"orders": [0, 1], "returns": [0]}}'
        )
    return tuple(sorted(set(found)))


def check_same_partitions(
    option: str, given: Iterable[TopicPartition], present: Iterable[TopicPartition]
) -> None:
    """Reject an option that does not name exactly the partitions that are read."""
    named, there = set(given), set(present)
    missing = ", ".join(map(str, sorted(there - named)))
    extra = ", ".join(map(str, sorted(named - there)))
    if missing or extra:
        what = f"does not name {missing}" if missing else f"names {extra}, which is not read"
        codes = "; -2 is the earliest offset, -1 the latest"
        raise InvalidOption(
            f"{option} {what}: name every partition of the topics that are read"
            f"{'' if option.endswith(BY_TIMESTAMP) else codes}"
        )


def _example(option: str) -> str:
    """Return an example for the option."""
    if option.endswith(BY_TIMESTAMP):
        return '{"orders": {"0": 1767225600000, "1": 1767225600000}}, in milliseconds since 1970'
    code = LATEST if option.startswith("ending") else EARLIEST
    return f'{{"orders": {{"0": 12, "1": {code}}}}}'


def _integer(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int | str):
        raise TypeError(number)
    return int(number)
