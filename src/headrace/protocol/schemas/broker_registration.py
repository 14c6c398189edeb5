"""BrokerRegistration: API key 62.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure, Uint16
from headrace.protocol.uuids import ZERO, Uuid


class Listener(Structure):
    name: Annotated[str, "0+"] = ""
    host: Annotated[str, "0+"] = ""
    port: Annotated[Uint16, "0+"] = 0
    security_protocol: Annotated[Int16, "0+"] = 0


class Feature(Structure):
    name: Annotated[str, "0+"] = ""
    min_supported_version: Annotated[Int16, "0+"] = 0
    max_supported_version: Annotated[Int16, "0+"] = 0


class BrokerRegistrationRequest(Message):
    API_KEY = 62
    VERSIONS = range(5)
    FLEXIBLE_FROM = 0

    broker_id: Annotated[Int32, "0+"] = 0
    cluster_id: Annotated[str, "0+"] = ""
    incarnation_id: Annotated[Uuid, "0+"] = ZERO
    listeners: Annotated[list[Listener], "0+"] = []
    features: Annotated[list[Feature], "0+"] = []
    rack: Annotated[str | None, "0+"] = ""
    is_migrating_zk_broker: Annotated[bool, "1+"] = False
    log_dirs: Annotated[list[Uuid], "2+ ignorable"] = []
    previous_broker_epoch: Annotated[Int64, "3+ ignorable"] = -1


class BrokerRegistrationResponse(Message):
    API_KEY = 62
    VERSIONS = range(5)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    broker_epoch: Annotated[Int64, "0+"] = -1
