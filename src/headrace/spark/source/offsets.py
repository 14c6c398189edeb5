"""Positions in topics: as the source keeps them, and as the options and Spark spell them.

The JSON is the stock connector's: `{"topic": {"0": 12}}`. In options -2 is the earliest and -1 the
latest offset; what Spark keeps in a checkpoint has true offsets only.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from headrace.spark.source.errors import InvalidOption

EARLIEST = -2
LATEST = -1
BY_TIMESTAMP = "ByTimestamp"
"""How the names of options end that have times in the place of offsets."""
_WORDS = {"startingOffsets": "earliest, latest or ", "endingOffsets": "latest or "}
"""What may stand in the place of JSON."""


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Positions = dict[TopicPartition, int]
"""An offset in each partition: the next that is to be read."""


def from_spark(kept: Mapping[str, Mapping[str, int]]) -> Positions:
    """Positions as Spark hands them back: partition numbers have become strings."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in kept.items()
        for partition, offset in partitions.items()
    }


def to_spark(positions: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Positions as Spark keeps them, always in the same order."""
    kept: dict[str, dict[str, int]] = {}
    for place in sorted(positions):
        kept.setdefault(place.topic, {})[str(place.partition)] = positions[place]
    return kept


def parse_numbers(option: str, text: str) -> Positions:
    """`{"topic": {"0": 12}}` of an option: offsets, or timestamps in milliseconds."""
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
    """`{"topic": [0, 1]}`: the partitions of `assign`."""
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
    """An option that names partitions must name all that are read and no others."""
    named, there = set(given), set(present)
    missing = ", ".join(map(str, sorted(there - named)))
    extra = ", ".join(map(str, sorted(named - there)))
    if missing or extra:
        what = f"does not name {missing}" if missing else f"names {extra}, which is not read"
        codes = "; -2 stands for the earliest offset, -1 for the latest"
        raise InvalidOption(
            f"{option} {what}: name every partition of the topics that are read"
            f"{'' if option.endswith(BY_TIMESTAMP) else codes}"
        )


def _example(option: str) -> str:
    """What the option takes; an end cannot be the earliest offset, and a time is no code."""
    if option.endswith(BY_TIMESTAMP):
        return '{"orders": {"0": 1767225600000, "1": 1767225600000}}, in milliseconds since 1970'
    code = LATEST if option.startswith("ending") else EARLIEST
    return f'{{"orders": {{"0": 12, "1": {code}}}}}'


def _integer(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int | str):
        raise TypeError(number)
    return int(number)
