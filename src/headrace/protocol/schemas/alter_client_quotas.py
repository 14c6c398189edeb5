"""AlterClientQuotas: API key 49.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure


class AlterClientQuotasRequestEntityData(Structure):
    entity_type: Annotated[str, "0+"] = ""
    entity_name: Annotated[str | None, "0+"] = ""


class OpData(Structure):
    key: Annotated[str, "0+"] = ""
    value: Annotated[float, "0+"] = 0.0
    remove: Annotated[bool, "0+"] = False


class AlterClientQuotasRequestEntryData(Structure):
    entity: Annotated[list[AlterClientQuotasRequestEntityData], "0+"] = []
    ops: Annotated[list[OpData], "0+"] = []


class AlterClientQuotasRequest(Message):
    API_KEY = 49
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    entries: Annotated[list[AlterClientQuotasRequestEntryData], "0+"] = []
    validate_only: Annotated[bool, "0+"] = False


class AlterClientQuotasResponseEntityData(Structure):
    entity_type: Annotated[str, "0+"] = ""
    entity_name: Annotated[str | None, "0+"] = ""


class AlterClientQuotasResponseEntryData(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
    entity: Annotated[list[AlterClientQuotasResponseEntityData], "0+"] = []


class AlterClientQuotasResponse(Message):
    API_KEY = 49
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    entries: Annotated[list[AlterClientQuotasResponseEntryData], "0+"] = []
