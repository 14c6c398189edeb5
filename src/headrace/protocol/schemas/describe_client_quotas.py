"""DescribeClientQuotas: API key 48.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class ComponentData(Structure):
    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""

    FIELDS = """
        entity_type  string  0+
        match_type   int8    0+
        match        string  0+  nullable
    """


class DescribeClientQuotasRequest(Message):
    API_KEY = 48
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    components: list[ComponentData] = []
    strict: bool = False

    FIELDS = """
        components  []ComponentData  0+
        strict      bool             0+
    """


class EntityData(Structure):
    entity_type: str = ""
    entity_name: str | None = ""

    FIELDS = """
        entity_type  string  0+
        entity_name  string  0+  nullable
    """


class ValueData(Structure):
    key: str = ""
    value: float = 0.0

    FIELDS = """
        key    string   0+
        value  float64  0+
    """


class EntryData(Structure):
    entity: list[EntityData] = []
    values: list[ValueData] = []

    FIELDS = """
        entity  []EntityData  0+
        values  []ValueData   0+
    """


class DescribeClientQuotasResponse(Message):
    API_KEY = 48
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = []

    FIELDS = """
        throttle_time_ms  int32        0+
        error_code        int16        0+
        error_message     string       0+  nullable
        entries           []EntryData  0+  nullable
    """
