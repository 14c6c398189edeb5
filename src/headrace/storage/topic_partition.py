"""Names of the directories that hold a partition."""

from headrace.protocol.topic_partition import TopicPartition

__all__ = ["TopicPartition", "directory_name_aside", "is_aside", "parse_directory_name"]

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
_NAME_LENGTH_MAX = 255


def parse_directory_name(name: str) -> TopicPartition | None:
    """The partition that a directory holds, or None for any other name.

    The name is split at the last dash, since topic names may contain dashes. Kafka renames
    directories of deleted partitions to `topic-0.<32 hex digits>-delete`; these return None too.
    """
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not (number.isascii() and number.isdigit()):
        return None
    return TopicPartition(topic, int(number))


def directory_name_aside(partition: TopicPartition, unique: str, suffix: str) -> str:
    """Return the name of a partition's directory that waits for deletion, or for inspection.

    The topic is cut if the name would exceed the limit of file systems.
    """
    tail = f"-{partition.partition}.{unique}{suffix}"
    return partition.topic[: _NAME_LENGTH_MAX - len(tail)] + tail


def is_aside(name: str, suffix: str) -> bool:
    """Return whether `directory_name_aside` made this name with this suffix."""
    head, dot, tail = name.removesuffix(suffix).rpartition(".")
    return name.endswith(suffix) and bool(dot) and bool(head) and len(tail) == 32
