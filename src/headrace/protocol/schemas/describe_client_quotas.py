"""DescribeClientQuotas: API key 48.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class ComponentData(Structure):
    entity_type: Annotated[str, "0+"] = ""
    match_type: Annotated[Int8, "0+"] = 0
    match: Annotated[str | None, "0+"] = ""


class DescribeClientQuotasRequest(Message):
    API_KEY = 48
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    components: Annotated[list[ComponentData], "0+"] = []
    strict: Annotated[bool, "0+"] = False


class EntityData(Structure):
    entity_type: Annotated[str, "0+"] = ""
    entity_name: Annotated[str | None, "0+"] = ""


class ValueData(Structure):
    key: Annotated[str, "0+"] = ""
    value: Annotated[float, "0+"] = 0.0


class EntryData(Structure):
    entity: Annotated[list[EntityData], "0+"] = []
    values: Annotated[list[ValueData], "0+"] = []


class DescribeClientQuotasResponse(Message):
    API_KEY = 48
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
    entries: Annotated[list[EntryData] | None, "0+"] = []
