"""The values of control records, which the broker and the quorum write themselves.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import (
    FrozenStructure,
    Int16,
    Int32,
    Int64,
    Message,
    Structure,
    Uint16,
)
from headrace.protocol.uuids import ZERO, Uuid


class EndTxnMarker(Message):
    VERSIONS = range(1)

    coordinator_epoch: Annotated[Int32, "0+"] = 0


class KRaftVersionRecord(Message):
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    version: Annotated[Int16, "0+"] = 0
    kraft_version: Annotated[Int16, "0+"] = 0


class LeaderChangeMessageVoter(Structure):
    voter_id: Annotated[Int32, "0+"] = 0
    voter_directory_id: Annotated[Uuid, "1+"] = ZERO


class LeaderChangeMessage(Message):
    VERSIONS = range(2)
    FLEXIBLE_FROM = 0

    version: Annotated[Int16, "0+"] = 0
    leader_id: Annotated[Int32, "0+"] = 0
    voters: Annotated[list[LeaderChangeMessageVoter], "0+"] = []
    granting_voters: Annotated[list[LeaderChangeMessageVoter], "0+"] = []


class SnapshotFooterRecord(Message):
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    version: Annotated[Int16, "0+"] = 0


class SnapshotHeaderRecord(Message):
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    version: Annotated[Int16, "0+"] = 0
    last_contained_log_timestamp: Annotated[Int64, "0+"] = 0


class Endpoint(Structure):
    name: Annotated[str, "0+"] = ""
    host: Annotated[str, "0+"] = ""
    port: Annotated[Uint16, "0+"] = 0


class KRaftVersionFeature(FrozenStructure, frozen=True):
    min_supported_version: Annotated[Int16, "0+"] = 0
    max_supported_version: Annotated[Int16, "0+"] = 0


class VotersRecordVoter(Structure):
    voter_id: Annotated[Int32, "0+"] = 0
    voter_directory_id: Annotated[Uuid, "0+"] = ZERO
    endpoints: Annotated[list[Endpoint], "0+"] = []
    kraft_version_feature: Annotated[KRaftVersionFeature, "0+"] = KRaftVersionFeature()


class VotersRecord(Message):
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    version: Annotated[Int16, "0+"] = 0
    voters: Annotated[list[VotersRecordVoter], "0+"] = []
