"""FindCoordinator: API key 10.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class FindCoordinatorRequest(Message):
    API_KEY = 10
    VERSIONS = range(7)
    FLEXIBLE_FROM = 3

    key: Annotated[str, "0-3"] = ""
    key_type: Annotated[Int8, "1+"] = 0
    coordinator_keys: Annotated[list[str], "4+"] = []


class Coordinator(Structure):
    key: Annotated[str, "4+"] = ""
    node_id: Annotated[Int32, "4+"] = 0
    host: Annotated[str, "4+"] = ""
    port: Annotated[Int32, "4+"] = 0
    error_code: Annotated[Int16, "4+"] = 0
    error_message: Annotated[str | None, "4+ ignorable"] = ""


class FindCoordinatorResponse(Message):
    API_KEY = 10
    VERSIONS = range(7)
    FLEXIBLE_FROM = 3

    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    error_code: Annotated[Int16, "0-3"] = 0
    error_message: Annotated[str | None, "1-3 ignorable"] = ""
    node_id: Annotated[Int32, "0-3"] = 0
    host: Annotated[str, "0-3"] = ""
    port: Annotated[Int32, "0-3"] = 0
    coordinators: Annotated[list[Coordinator], "4+"] = []
