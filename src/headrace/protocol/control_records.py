"""Control records: records of brokers among the records of clients, with a type in the key."""

from enum import IntEnum
from struct import Struct

from headrace.errors import CorruptMessage

_KEY = Struct(">hh")  # The key's own version, and the type.


class ControlType(IntEnum):
    """The type of a control record: the end of a transaction, or an event of a quorum's log."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def control_key(kind: ControlType) -> bytes:
    """The key of a control record."""
    return _KEY.pack(0, kind)


def control_type(key: bytes | None) -> int:
    """The type in a control record's key; later versions of Kafka may have other types."""
    if key is None or len(key) < _KEY.size:
        raise CorruptMessage("a control record has no key")
    kind: int = _KEY.unpack_from(key)[1]
    return kind
