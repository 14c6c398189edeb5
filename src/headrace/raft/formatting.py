"""Format log directories for a new cluster of one, as `kafka-storage format --standalone` does.

Each directory gets its identity (`meta.properties`); the one with the metadata log also gets the
records that the first leader writes into the log (`bootstrap.checkpoint`) and a snapshot at
offset 0 that names this node as the only voter. The identity comes last: a directory that a
crash left without it is formatted again.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from headrace.errors import HeadraceError
from headrace.metadata.features import (
    DEFAULT_LEVELS,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED,
)
from headrace.metadata.image import Endpoint
from headrace.metadata.image_records import feature_records
from headrace.metadata.records import VersionedRecord
from headrace.metadata.snapshots import FORMATTED, encode_snapshot
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.schemas.records import control
from headrace.protocol.uuids import Uuid, random_uuid, to_text
from headrace.raft.snapshot_files import write_snapshot
from headrace.runtime import files
from headrace.storage.checkpoints import (
    META_PROPERTIES,
    DirectoryIdentity,
    decode_identity,
    encode_identity,
)
from headrace.storage.topic_partition import TopicPartition

_log = logging.getLogger(__name__)

METADATA_PARTITION = TopicPartition(METADATA_TOPIC, 0)
BOOTSTRAP_FILE = "bootstrap.checkpoint"
DYNAMIC_VOTERS = 1
"""The kraft.version in which the voters stand in the log and can change."""


class InconsistentDirectories(HeadraceError):
    """Log directories that do not belong together, or not to this node."""


class DirectoryMissing(InconsistentDirectories):
    """A directory that is not formatted, on a node that misses one it had."""


class NewNode(msgspec.Struct, frozen=True, kw_only=True):
    """What formatting has to know."""

    node_id: int
    controller_endpoint: Endpoint
    cluster_id: str | None = None
    levels: Mapping[str, int] = DEFAULT_LEVELS
    bootstrap: Sequence[Message] = ()
    """Further records for the first leader to write, such as credentials."""


def format_directories(
    directories: Sequence[str],
    metadata_directory: str,
    node: NewNode,
    now_ms: int,
    *,
    known: Callable[[], Mapping[Uuid, int]] = dict,
) -> dict[str, DirectoryIdentity]:
    """Format every directory that is not yet formatted; the identities of all, by path.

    A directory added to a node that exists joins its cluster, unless the node misses one of those
    that it had: then this may be the place where that one was to be mounted. `known` tells
    which it had, with their numbers of partitions; it is asked only when it matters.
    """
    _check_levels(node.levels)
    found = _survey(directories, metadata_directory)
    identities = found.identities
    cluster_id = _cluster_id(identities, node)
    if metadata_directory not in identities and identities:
        raise InconsistentDirectories(
            f"{metadata_directory} holds no metadata log, but other log directories are in use; "
            "is metadata.log.dir, or the first of log.dirs, the one it was?"
        )
    if identities and found.unformatted:
        _check_none_is_missing(found, known())
        _log.info("new log directories of this node: %s", ", ".join(found.unformatted))
    for directory in found.unformatted:
        identity = DirectoryIdentity(cluster_id, node.node_id, random_uuid())
        files.make_directories(directory)
        _write_bootstrap(directory, node, now_ms)
        if directory == metadata_directory:
            _write_voters(directory, identity.directory_id, node, now_ms)
        files.replace_file(f"{directory}/{META_PROPERTIES}", encode_identity(identity))
        identities[directory] = identity
    return identities


def read_identity(directory: str) -> DirectoryIdentity | None:
    """Whose directory it is; None if it is not formatted yet."""
    try:
        return decode_identity(files.read(f"{directory}/{META_PROPERTIES}"))
    except FileNotFoundError:
        return None


def voters_record(node_id: int, directory_id: Uuid, endpoint: Endpoint) -> control.VotersRecord:
    """A set of voters that has one member."""
    voter = control.VotersRecordVoter(
        voter_id=node_id,
        voter_directory_id=directory_id,
        endpoints=[control.Endpoint(endpoint.name, endpoint.host, endpoint.port)],
        kraft_version_feature=control.KRaftVersionFeature(*SUPPORTED[KRAFT_VERSION]),
    )
    return control.VotersRecord(0, [voter])


class _Survey(NamedTuple):
    """The log directories as they were found."""

    identities: dict[str, DirectoryIdentity]
    unformatted: list[str]
    unreadable: list[str]


def _survey(directories: Sequence[str], metadata_directory: str) -> _Survey:
    """One that cannot be read will be offline; the node does without it, save for its metadata."""
    found = _Survey({}, [], [])
    for directory in dict.fromkeys((metadata_directory, *directories)):
        try:
            identity = read_identity(directory)
        except OSError as error:
            if directory == metadata_directory:
                raise
            _log.error("the log directory %s cannot be used: %s", directory, error)
            found.unreadable.append(directory)
            continue
        if identity is None:
            found.unformatted.append(directory)
        else:
            found.identities[directory] = identity
    return found


def _check_none_is_missing(found: _Survey, known: Mapping[Uuid, int]) -> None:
    present = {identity.directory_id for identity in found.identities.values()}
    missing = [
        f"{to_text(directory_id)} with {count} partitions"
        for directory_id, count in known.items()
        if directory_id not in present
    ]
    if not missing:
        return
    unreadable = f" ({', '.join(found.unreadable)} cannot be read)" if found.unreadable else ""
    verb = "is" if len(found.unformatted) == 1 else "are"
    raise DirectoryMissing(
        f"{', '.join(found.unformatted)} {verb} not formatted, and "
        f"this node misses the log directory "
        f"{', '.join(missing)}{unreadable}. Is a disk not mounted? Mount it and start again. If "
        "the directory is meant to be new, start once with headrace.format.new.directories=true; "
        "what lay on the missing one stays offline. Or take it out of log.dirs"
    )


def _check_levels(levels: Mapping[str, int]) -> None:
    if METADATA_VERSION not in levels:
        raise ValueError(f"a new cluster needs a level of {METADATA_VERSION}")
    for feature, level in levels.items():
        if feature not in SUPPORTED or (level and not SUPPORTED[feature].covers(level)):
            raise ValueError(f"{feature} {level} is not supported")


def _cluster_id(identities: Mapping[str, DirectoryIdentity], node: NewNode) -> str:
    for directory, identity in identities.items():
        if identity.node_id != node.node_id:
            raise InconsistentDirectories(
                f"{directory} belongs to node {identity.node_id}, and node.id is {node.node_id}"
            )
    clusters = {identity.cluster_id for identity in identities.values()}
    if len(clusters) > 1:
        raise InconsistentDirectories(
            f"the log directories belong to different clusters: {', '.join(sorted(clusters))}"
        )
    for cluster_id in clusters:
        if node.cluster_id not in (None, cluster_id):
            raise InconsistentDirectories(
                f"the log directories belong to cluster {cluster_id}, not to {node.cluster_id}"
            )
        return cluster_id
    return node.cluster_id or to_text(random_uuid())


def _write_bootstrap(directory: str, node: NewNode, now_ms: int) -> None:
    records = [*feature_records({k: v for k, v in node.levels.items() if v}), *node.bootstrap]
    batches = encode_snapshot(
        map(VersionedRecord, records), epoch=0, last_contained_log_timestamp_ms=0, now_ms=now_ms
    )
    files.replace_file(f"{directory}/{BOOTSTRAP_FILE}", bytearray().join(batches))


def _write_voters(directory: str, directory_id: Uuid, node: NewNode, now_ms: int) -> None:
    path = f"{directory}/{METADATA_PARTITION}"
    files.make_directories(path)
    batches = encode_snapshot(
        (),
        epoch=0,
        last_contained_log_timestamp_ms=now_ms,
        now_ms=now_ms,
        voters=voters_record(node.node_id, directory_id, node.controller_endpoint),
        kraft_version=DYNAMIC_VOTERS,
    )
    write_snapshot(path, FORMATTED, batches)
