"""The log directories that the metadata knows of a node, read before any of them is in use.

A directory that is to be formatted may stand where a known one has not been mounted. Only the
metadata can tell, so it is asked first.
"""

from collections import Counter
from collections.abc import Mapping

from headrace.metadata.image import MetadataImage
from headrace.metadata.loader import MetadataLoader
from headrace.protocol.uuids import Uuid, is_reserved
from headrace.raft.formatting import read_identity
from headrace.raft.metadata_log import MetadataLog
from headrace.runtime import files
from headrace.storage.checkpoints import LOCK


def known_directories(image: MetadataImage, node_id: int) -> Mapping[Uuid, int]:
    """The ids of a node's log directories, each with the number of partitions that lie there.

    The registration is not enough: a start without one of the directories leaves it out, and its
    partitions go on naming it.
    """
    broker = image.brokers.get(node_id)
    counts = Counter[Uuid](dict.fromkeys(broker.directories if broker is not None else (), 0))
    for topic in image.topics.values():
        for partition in topic.partitions:
            directory = partition.directory_of(node_id)
            if directory is not None and not is_reserved(directory):
                counts[directory] += 1
    return counts


def read_known_directories(metadata_directory: str) -> Mapping[Uuid, int]:
    """What the metadata log in a formatted directory says of the node that it belongs to.

    Opening a log mends what a crash has left, so nobody else may be at work in it.
    """
    identity = read_identity(metadata_directory)
    if identity is None:
        return {}
    lock = files.lock(f"{metadata_directory}/{LOCK}")
    log = MetadataLog.open(metadata_directory, identity.node_id, identity.directory_id)
    loader = MetadataLoader()
    try:
        log.load(loader)
    finally:
        log.close()
    del lock  # The node takes it anew, with those of the other directories.
    loader.publish()
    return known_directories(loader.image, identity.node_id)
