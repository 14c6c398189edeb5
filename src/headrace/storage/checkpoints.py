"""The small text files of a log directory: offset checkpoints, identity, the clean-stop marker.

Each file is written completely and renamed over the old one, so a crash leaves the old or the new.
"""

import msgspec

from headrace.errors import HeadraceError
from headrace.protocol.uuids import Uuid, from_text, to_text
from headrace.runtime import files
from headrace.storage.topic_partition import TopicPartition

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
REGISTRATION = ".headrace_registration"
LOCK = ".lock"

_VERSION = "0"
UNKNOWN_BROKER_EPOCH = -1
LAST_BROKER_EPOCH = -2
"""The epoch with which the metadata have the broker, whatever it is."""


class CorruptCheckpoint(HeadraceError):
    """A checkpoint file with invalid content."""


def encode_lines(lines: list[str]) -> bytes:
    """Kafka's frame of every checkpoint: a version, a count, and a line for each entry."""
    return "\n".join((_VERSION, str(len(lines)), *lines, "")).encode()


def decode_lines(content: bytes) -> list[str]:
    if not content:
        return []  # Kafka creates the file before its first entry.
    if not content.endswith(b"\n"):
        # A power cut may have cut the last number, which would still be a number.
        raise CorruptCheckpoint("its last line is incomplete")
    version, *rest = content.decode(errors="replace").splitlines() or [""]
    if version != _VERSION:
        raise CorruptCheckpoint(f"version {version!r} is not known")
    lines = [line for line in rest[1:] if line]
    if not rest or rest[0] != str(len(lines)):
        raise CorruptCheckpoint(f"it announces {rest[:1]} entries and holds {len(lines)}")
    return lines


def write_offsets(path: str, offsets: dict[TopicPartition, int]) -> None:
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    files.replace_file(path, encode_lines(lines))


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """The offsets of a checkpoint; empty if there is no such file."""
    try:
        lines = decode_lines(files.read(path))
        return dict(map(_decode_offset, lines))
    except FileNotFoundError:
        return {}
    except (ValueError, CorruptCheckpoint) as error:
        raise CorruptCheckpoint(f"{path} cannot be read: {error}") from error


def _decode_offset(line: str) -> tuple[TopicPartition, int]:
    topic, partition, offset = line.split(" ")
    return TopicPartition(topic, int(partition)), int(offset)


def encode_partition_metadata(topic_id: Uuid) -> bytes:
    return f"version: 0\ntopic_id: {to_text(topic_id)}".encode()


def decode_partition_metadata(content: bytes) -> Uuid:
    """The topic id of a partition directory; raises `CorruptCheckpoint` if it is missing."""
    fields = dict(_fields(content.decode(errors="replace"), ":"))
    try:
        if fields["version"] != _VERSION:
            raise CorruptCheckpoint(f"version {fields['version']!r} is not known")
        return from_text(fields["topic_id"])
    except (KeyError, ValueError) as error:
        raise CorruptCheckpoint(f"it names no topic: {error}") from error


class DirectoryIdentity(msgspec.Struct, frozen=True):
    """The owner of a log directory (`meta.properties`)."""

    cluster_id: str
    node_id: int
    directory_id: Uuid


def encode_identity(identity: DirectoryIdentity) -> bytes:
    return (
        f"version=1\ncluster.id={identity.cluster_id}\nnode.id={identity.node_id}\n"
        f"directory.id={to_text(identity.directory_id)}\n"
    ).encode()


def decode_identity(content: bytes) -> DirectoryIdentity:
    fields = dict(_fields(content.decode(errors="replace"), "="))
    try:
        if fields["version"] != "1":
            raise CorruptCheckpoint(f"version {fields['version']!r} is not known")
        return DirectoryIdentity(
            fields["cluster.id"], int(fields["node.id"]), from_text(fields["directory.id"])
        )
    except KeyError as error:
        raise CorruptCheckpoint(f"{error} is missing") from error
    except ValueError as error:
        raise CorruptCheckpoint(str(error)) from error


def _fields(text: str, separator: str) -> list[tuple[str, str]]:
    """The fields of a file of `name<separator>value` lines, comments left out."""
    lines = (line.strip() for line in text.splitlines())
    parts = (line.partition(separator) for line in lines if line and line[0] not in "#!")
    # Java's writer escapes more than necessary; the characters used here need no escape.
    return [(name.strip(), value.strip().replace("\\", "")) for name, _, value in parts]


def encode_registration(broker_epoch: int, boot_id: str) -> bytes:
    return msgspec.json.encode(_Registration(broker_epoch, boot_id))


def decode_registration(content: bytes, boot_id: str) -> int:
    """The epoch of a broker that registered since the machine started.

    LAST_BROKER_EPOCH means that it died while it registered, and -1 that the boot is another one.
    """
    try:
        found = msgspec.json.decode(content, type=_Registration)
    except msgspec.DecodeError:
        return UNKNOWN_BROKER_EPOCH
    return found.broker_epoch if boot_id and found.boot_id == boot_id else UNKNOWN_BROKER_EPOCH


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    return b'{"version":0,"brokerEpoch":%d}' % broker_epoch


def decode_clean_shutdown(content: bytes) -> int:
    """The epoch in which the broker stopped cleanly, -1 if the marker has none."""
    try:
        return msgspec.json.decode(content, type=_CleanShutdown).broker_epoch
    except msgspec.DecodeError:
        return UNKNOWN_BROKER_EPOCH


class _Registration(msgspec.Struct, rename="camel"):
    broker_epoch: int
    boot_id: str


class _CleanShutdown(msgspec.Struct, rename="camel"):
    broker_epoch: int = UNKNOWN_BROKER_EPOCH
