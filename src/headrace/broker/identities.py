"""The identities of a node's log directories, which say to which node and cluster they belong."""

from collections.abc import Mapping

from headrace.broker.registration import controller_endpoint
from headrace.metadata.log.formatting import NewNode, format_directories
from headrace.protocol.uuids import Uuid
from headrace.runtime.clock import Clock
from headrace.settings.broker import BrokerSettings
from headrace.storage.checkpoints import DirectoryIdentity


def open_identities(settings: BrokerSettings, clock: Clock) -> Mapping[str, DirectoryIdentity]:
    """Read the identities of the log directories; a node that is alone formats new ones."""
    return format_directories(
        settings.directories,
        settings.metadata_directory,
        NewNode(
            node_id=settings.node_id,
            controller_endpoint=(
                controller_endpoint(settings) if settings.may_begin_cluster else None
            ),
        ),
        clock.now_ms(),
        known=lambda: _known_directories(settings),
    )


def _known_directories(settings: BrokerSettings) -> Mapping[Uuid, int]:
    """The log directories that this node had, so that an empty one does not replace one of them."""
    if settings.headrace_format_new_directories:
        return {}
    from headrace.metadata.log.known_directories import read_known_directories  # Rarely needed.

    return read_known_directories(settings.metadata_directory)
