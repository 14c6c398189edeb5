"""Format log directories for a node of a new cluster, as `kafka-storage format` does.

Each directory gets its identity (`meta.properties`) and the records that the first leader writes
to the log (`bootstrap.checkpoint`). If the voters are to be in the metadata log, the metadata
directory also gets a snapshot at offset 0 with the first voters, the same on every node. A broker,
a controller that joins later, and a static quorum have no such snapshot. The identity is written
last: after a crash, a directory without it is formatted again.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from headrace.errors import HeadraceError
from headrace.metadata.features import DEFAULT_LEVELS, KRAFT_VERSION, METADATA_VERSION, SUPPORTED
from headrace.metadata.image import Endpoint
from headrace.metadata.image_records import feature_records
from headrace.metadata.log.snapshot_files import write_snapshot
from headrace.metadata.records import VersionedRecord
from headrace.metadata.snapshots import FORMATTED, encode_snapshot
from headrace.protocol.message import Message
from headrace.protocol.metadata_topic import METADATA_TOPIC
from headrace.protocol.schemas.records import control
from headrace.protocol.uuids import Uuid, random_uuid, to_text
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
"""The kraft.version in which the voters are in the log and can change."""


class InconsistentDirectories(HeadraceError):
    """Log directories belong to different nodes or clusters."""


class DirectoryMissing(InconsistentDirectories):
    """A directory is not formatted, and the node misses one of its known directories."""


class AlreadyFormatted(HeadraceError):
    """A directory that is to be formatted belongs to a cluster."""


class NotFormatted(HeadraceError):
    """A node of a cluster has new directories, and which cluster it is in is not known."""


class Voter(NamedTuple):
    """A controller in the quorum, with the log directory of its metadata log."""

    node_id: int
    directory_id: Uuid
    endpoint: Endpoint


class NewNode(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that formatting writes."""

    node_id: int
    controller_endpoint: Endpoint | None = None
    """The address of a controller that begins a cluster as the only voter."""
    voters: Sequence[Voter] = ()
    """The first voters, if they are not this node alone."""
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
    """Format every directory that is not formatted yet; return the identities of all, by path.

    A directory that is added to a node joins its cluster, unless the node misses one of its known
    directories: the new path may be the mount point of the missing one. `known` returns the known
    directories with their numbers of partitions; it is called only if it is needed.
    """
    _check_levels(node.levels)
    found = _survey(directories, metadata_directory)
    identities = found.identities
    if not identities and node.cluster_id is None and node.controller_endpoint is None:
        raise NotFormatted(
            f"{metadata_directory} is not formatted: run headrace format with the --config of this "
            "node and the --cluster-id of the cluster that it joins"
        )
    cluster_id = _cluster_id(identities, node)
    if metadata_directory not in identities and identities:
        raise InconsistentDirectories(
            f"{metadata_directory} holds no metadata log, but other log directories are in use; "
            "was metadata.log.dir, or the first of log.dirs, changed?"
        )
    if identities and found.unformatted:
        _check_none_is_missing(found, known())
        _log.info("log directories added", extra={"directories": ",".join(found.unformatted)})
    voters = _first_voters(node)
    for directory in found.unformatted:
        holds_metadata = directory == metadata_directory
        directory_id = _directory_id(node.node_id, voters if holds_metadata else ())
        identity = DirectoryIdentity(cluster_id, node.node_id, directory_id)
        files.make_directories(directory)
        _write_bootstrap(directory, node, now_ms)
        if holds_metadata and voters:
            _write_voters(directory, voters, now_ms)
        files.replace_file(f"{directory}/{META_PROPERTIES}", encode_identity(identity))
        identities[directory] = identity
    return identities


def read_identity(directory: str) -> DirectoryIdentity | None:
    """Return the identity of a directory; None if it is not formatted yet."""
    try:
        return decode_identity(files.read(f"{directory}/{META_PROPERTIES}"))
    except FileNotFoundError:
        return None


def check_unformatted(directories: Sequence[str]) -> None:
    """Raise if one of the directories is formatted, whatever its cluster is."""
    for directory in directories:
        if read_identity(directory) is not None:
            raise AlreadyFormatted(
                f"{directory} is already formatted; choose another directory, or format only the "
                "others with --ignore-formatted"
            )


def _voter_entry(voter: Voter) -> control.VotersRecordVoter:
    endpoint = voter.endpoint
    return control.VotersRecordVoter(
        voter_id=voter.node_id,
        voter_directory_id=voter.directory_id,
        endpoints=[control.Endpoint(endpoint.name, endpoint.host, endpoint.port)],
        kraft_version_feature=control.KRaftVersionFeature(*SUPPORTED[KRAFT_VERSION]),
    )


def _first_voters(node: NewNode) -> Sequence[Voter]:
    if node.voters or node.controller_endpoint is None:
        return sorted(node.voters)
    return (Voter(node.node_id, random_uuid(), node.controller_endpoint),)


def _directory_id(node_id: int, voters: Sequence[Voter]) -> Uuid:
    """The id that the other voters know, or a new one."""
    return next((one.directory_id for one in voters if one.node_id == node_id), random_uuid())


class _Survey(NamedTuple):
    """The state of the log directories at the start."""

    identities: dict[str, DirectoryIdentity]
    unformatted: list[str]
    unreadable: list[str]


def _survey(directories: Sequence[str], metadata_directory: str) -> _Survey:
    """Read the identity of each directory; an unreadable one goes offline if it has no metadata."""
    found = _Survey({}, [], [])
    for directory in dict.fromkeys((metadata_directory, *directories)):
        try:
            identity = read_identity(directory)
        except OSError as error:
            if directory == metadata_directory:
                raise
            _log.error("log directory offline", extra={"directory": directory, "error": str(error)})
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
        "partitions on the missing one stay offline. Or take it out of log.dirs"
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


def _write_voters(directory: str, voters: Sequence[Voter], now_ms: int) -> None:
    path = f"{directory}/{METADATA_PARTITION}"
    files.make_directories(path)
    batches = encode_snapshot(
        (),
        epoch=0,
        last_contained_log_timestamp_ms=now_ms,
        now_ms=now_ms,
        voters=control.VotersRecord(0, [_voter_entry(voter) for voter in voters]),
        kraft_version=DYNAMIC_VOTERS,
    )
    write_snapshot(path, FORMATTED, batches)
