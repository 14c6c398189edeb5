"""UpdateRaftVoter: API key 82.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import FrozenStructure, Int16, Int32, Message, Structure, Uint16
from headrace.protocol.uuids import ZERO, Uuid


class Listener(Structure):
    name: Annotated[str, "0+"] = ""
    host: Annotated[str, "0+"] = ""
    port: Annotated[Uint16, "0+"] = 0


class KRaftVersionFeature(FrozenStructure, frozen=True):
    min_supported_version: Annotated[Int16, "0+"] = 0
    max_supported_version: Annotated[Int16, "0+"] = 0


class UpdateRaftVoterRequest(Message):
    API_KEY = 82
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    cluster_id: Annotated[str | None, "0+"] = ""
    current_leader_epoch: Annotated[Int32, "0+"] = 0
    voter_id: Annotated[Int32, "0+"] = 0
    voter_directory_id: Annotated[Uuid, "0+"] = ZERO
    listeners: Annotated[list[Listener], "0+"] = []
    kraft_version_feature: Annotated[KRaftVersionFeature, "0+"] = KRaftVersionFeature()


class CurrentLeader(FrozenStructure, frozen=True):
    leader_id: Annotated[Int32, "0+"] = -1
    leader_epoch: Annotated[Int32, "0+"] = -1
    host: Annotated[str, "0+"] = ""
    port: Annotated[Int32, "0+"] = 0


class UpdateRaftVoterResponse(Message):
    API_KEY = 82
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    current_leader: Annotated[CurrentLeader, "0+ tag=0"] = CurrentLeader()
