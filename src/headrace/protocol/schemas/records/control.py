"""The values of control records, which the broker and the quorum write themselves.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import FrozenStructure, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class EndTxnMarker(Message):
    VERSIONS = range(1)

    coordinator_epoch: int = 0

    FIELDS = """
        coordinator_epoch  int32  0+
    """


class KRaftVersionRecord(Message):
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    version: int = 0
    kraft_version: int = 0

    FIELDS = """
        version        int16  0+
        kraft_version  int16  0+
    """


class LeaderChangeMessageVoter(Structure):
    voter_id: int = 0
    voter_directory_id: Uuid = ZERO

    FIELDS = """
        voter_id            int32  0+
        voter_directory_id  uuid   1+
    """


class LeaderChangeMessage(Message):
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    version: int = 0
    leader_id: int = 0
    voters: list[LeaderChangeMessageVoter] = []
    granting_voters: list[LeaderChangeMessageVoter] = []

    FIELDS = """
        version          int16                       0+
        leader_id        int32                       0+
        voters           []LeaderChangeMessageVoter  0+
        granting_voters  []LeaderChangeMessageVoter  0+
    """


class SnapshotFooterRecord(Message):
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    version: int = 0

    FIELDS = """
        version  int16  0+
    """


class SnapshotHeaderRecord(Message):
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    version: int = 0
    last_contained_log_timestamp: int = 0

    FIELDS = """
        version                       int16  0+
        last_contained_log_timestamp  int64  0+
    """


class Endpoint(Structure):
    name: str = ""
    host: str = ""
    port: int = 0

    FIELDS = """
        name  string  0+
        host  string  0+
        port  uint16  0+
    """


class KRaftVersionFeature(FrozenStructure, frozen=True):
    min_supported_version: int = 0
    max_supported_version: int = 0

    FIELDS = """
        min_supported_version  int16  0+
        max_supported_version  int16  0+
    """


class VotersRecordVoter(Structure):
    voter_id: int = 0
    voter_directory_id: Uuid = ZERO
    endpoints: list[Endpoint] = []
    kraft_version_feature: KRaftVersionFeature = KRaftVersionFeature()

    FIELDS = """
        voter_id               int32                0+
        voter_directory_id     uuid                 0+
        endpoints              []Endpoint           0+
        kraft_version_feature  KRaftVersionFeature  0+
    """


class VotersRecord(Message):
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    version: int = 0
    voters: list[VotersRecordVoter] = []

    FIELDS = """
        version  int16                0+
        voters   []VotersRecordVoter  0+
    """
