"""The name of a partition, and the names of the directories that hold one."""

from typing import NamedTuple

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
_NAME_LENGTH_MAX = 255


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def parse_directory_name(name: str) -> TopicPartition | None:
    """The partition that a directory holds, or None if the name is no partition's.

    The last dash splits, since topic names may hold dashes. Kafka sets directories aside as
    `topic-0.<32 hex digits>-delete`; those are not partitions, so they give None as well.
    """
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not (number.isascii() and number.isdigit()):
        return None
    return TopicPartition(topic, int(number))


def directory_name_aside(partition: TopicPartition, unique: str, suffix: str) -> str:
    """The name under which a partition's directory waits for deletion, or for a person to look.

    The topic is cut where the whole would exceed what file systems allow.
    """
    tail = f"-{partition.partition}.{unique}{suffix}"
    return partition.topic[: _NAME_LENGTH_MAX - len(tail)] + tail


def is_aside(name: str, suffix: str) -> bool:
    """Whether `directory_name_aside` made this name with this suffix."""
    head, dot, tail = name.removesuffix(suffix).rpartition(".")
    return name.endswith(suffix) and bool(dot) and bool(head) and len(tail) == 32
