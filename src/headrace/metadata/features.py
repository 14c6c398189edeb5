"""Features: named levels that all nodes of the cluster support, metadata.version above all.

A record finalizes a level. From then on every record must be readable for a node of that level, so
the current level decides the version of each record that is written.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from headrace.errors import UnsupportedVersion

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"


class VersionRange(NamedTuple):
    """The levels of one feature that a node supports, both ends included."""

    min_version: int
    max_version: int

    def covers(self, level: int) -> bool:
        return self.min_version <= level <= self.max_version


SUPPORTED: Mapping[str, VersionRange] = MappingProxyType(
    {
        METADATA_VERSION: VersionRange(7, 30),
        KRAFT_VERSION: VersionRange(0, 1),
        TRANSACTION_VERSION: VersionRange(0, 2),
        GROUP_VERSION: VersionRange(0, 1),
        SHARE_VERSION: VersionRange(0, 1),
        STREAMS_VERSION: VersionRange(0, 1),
        ELIGIBLE_LEADER_REPLICAS_VERSION: VersionRange(0, 1),
    }
)
"""The features of this node: those of Kafka 4.3, whose directories open here."""

DEFAULT_LEVELS: Mapping[str, int] = MappingProxyType(
    {
        METADATA_VERSION: 25,
        GROUP_VERSION: 1,
        TRANSACTION_VERSION: 2,
        SHARE_VERSION: 1,
        STREAMS_VERSION: 1,
    }
)
"""The levels of a new cluster: all features are on, at levels that Kafka 4.2 and later can join.

Metadata stays at the level of 4.0: no feature needs a later one, and a downgrade is impossible.
"""

METADATA_VERSION_NAMES: Mapping[int, str] = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
}

LEVELS_THAT_CHANGED_RECORDS = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30})
"""Levels with new records, which lower levels cannot read: a downgrade is impossible."""

_SCRAM = 11
_DELEGATION_TOKENS = 14
_CONTROLLER_REGISTRATION = 15
_TRANSACTIONS = 14
_ELR_RECORDS = 23


def register_broker_version(metadata_version: int) -> int:
    """Return the version of RegisterBrokerRecord to write."""
    if metadata_version >= 30:
        return 4
    if metadata_version >= 17:
        return 3
    return 2 if metadata_version >= 8 else 1


def has_controlled_shutdown(metadata_version: int) -> bool:
    """Return whether a registration shows that a broker is about to stop."""
    return metadata_version >= 8


def partition_version(metadata_version: int) -> int:
    """Return the version of PartitionRecord and PartitionChangeRecord to write."""
    if metadata_version >= _ELR_RECORDS:
        return 2
    return 1 if metadata_version >= 17 else 0


def has_directories(metadata_version: int) -> bool:
    """Return whether records name the log directory of each replica."""
    return metadata_version >= 17


def has_cordoned_directories(metadata_version: int) -> bool:
    """Return whether brokers register the log directories without new replicas."""
    return metadata_version >= 30


def has_scram(metadata_version: int) -> bool:
    """Return whether the metadata can have SCRAM credentials."""
    return metadata_version >= _SCRAM


def has_delegation_tokens(metadata_version: int) -> bool:
    return metadata_version >= _DELEGATION_TOKENS


def has_controller_registration(metadata_version: int) -> bool:
    return metadata_version >= _CONTROLLER_REGISTRATION


def has_transactions(metadata_version: int) -> bool:
    """Return whether BeginTransactionRecord and EndTransactionRecord exist."""
    return metadata_version >= _TRANSACTIONS


def bumps_leader_epoch_on_isr_shrink(metadata_version: int) -> bool:
    """Return whether brokers notice a smaller ISR only by a new leader epoch."""
    return metadata_version < 12


def check_share_groups(levels: Mapping[str, int]) -> None:
    """Raise unless share groups are enabled; old clusters may not have them yet."""
    if not levels.get(SHARE_VERSION, 0):
        raise UnsupportedVersion(
            "share groups are disabled in this cluster: raise the feature share.version to 1"
        )
