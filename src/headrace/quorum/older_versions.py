"""Answers of the raft core in older versions of an API, for other releases of nodes and tools.

The core fills in addresses of nodes and directories of replicas. Older versions have no fields for
them, and readers of these versions have the voters in their configuration.
"""

from headrace.protocol.fields import fields_of
from headrace.protocol.message import Message
from headrace.protocol.schemas.describe_quorum import DescribeQuorumResponse
from headrace.protocol.uuids import ZERO

_ADDRESSES = ("node_endpoints", "nodes")
_DIRECTORIES_FROM = 2


def in_version(answer: Message, version: int) -> Message:
    """Leave out the addresses and directories that a version lacks."""
    for field in fields_of(type(answer)):
        if field.name in _ADDRESSES and version not in field.versions:
            setattr(answer, field.name, [])
    if isinstance(answer, DescribeQuorumResponse) and version < _DIRECTORIES_FROM:
        for topic in answer.topics:
            for partition in topic.partitions:
                for replica in (*partition.current_voters, *partition.observers):
                    replica.replica_directory_id = ZERO
    return answer
