"""The log directories of a node according to the metadata, read before any of them is in use.

A directory without a format may be the mount point of a known directory that is not mounted. Only
the metadata has the known directories, so it is read first.
"""

from collections import Counter
from collections.abc import Mapping

from headrace.metadata.image import MetadataImage
from headrace.metadata.loader import MetadataLoader
from headrace.metadata.log.formatting import read_identity
from headrace.metadata.log.metadata_log import MetadataLog
from headrace.protocol.uuids import Uuid, is_reserved
from headrace.runtime import files
from headrace.storage.checkpoints import LOCK


def known_directories(image: MetadataImage, node_id: int) -> Mapping[Uuid, int]:
    """Return the ids of a node's log directories, each with its number of partitions.

    The registration is not enough: a start without one of the directories removes it there, but its
    partitions still refer to it.
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
    """Read the known directories from the metadata log in a formatted directory.

    The directory is locked meanwhile, because opening a log repairs it after a crash.
    """
    identity = read_identity(metadata_directory)
    if identity is None:
        return {}
    lock = files.lock(f"{metadata_directory}/{LOCK}")
    log = MetadataLog.open(metadata_directory)
    loader = MetadataLoader()
    try:
        log.replay(loader, log.end_offset)
    finally:
        log.close()
    del lock  # The node locks this and the other directories again.
    loader.publish()
    return known_directories(loader.image, identity.node_id)
