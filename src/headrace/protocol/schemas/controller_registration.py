"""ControllerRegistration: API key 70.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure, Uint16
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


class ControllerRegistrationRequest(Message):
    API_KEY = 70
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    controller_id: Annotated[Int32, "0+"] = 0
    incarnation_id: Annotated[Uuid, "0+"] = ZERO
    zk_migration_ready: Annotated[bool, "0+"] = False
    listeners: Annotated[list[Listener], "0+"] = []
    features: Annotated[list[Feature], "0+"] = []


class ControllerRegistrationResponse(Message):
    API_KEY = 70
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
