"""AlterClientQuotas: API key 49.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class AlterClientQuotasRequestEntityData(Structure):
    entity_type: str = ""
    entity_name: str | None = ""

    FIELDS = """
        entity_type  string  0+
        entity_name  string  0+  nullable
    """


class OpData(Structure):
    key: str = ""
    value: float = 0.0
    remove: bool = False

    FIELDS = """
        key     string   0+
        value   float64  0+
        remove  bool     0+
    """


class AlterClientQuotasRequestEntryData(Structure):
    entity: list[AlterClientQuotasRequestEntityData] = []
    ops: list[OpData] = []

    FIELDS = """
        entity  []AlterClientQuotasRequestEntityData  0+
        ops     []OpData                              0+
    """


class AlterClientQuotasRequest(Message):
    API_KEY = 49
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    entries: list[AlterClientQuotasRequestEntryData] = []
    validate_only: bool = False

    FIELDS = """
        entries        []AlterClientQuotasRequestEntryData  0+
        validate_only  bool                                 0+
    """


class AlterClientQuotasResponseEntityData(Structure):
    entity_type: str = ""
    entity_name: str | None = ""

    FIELDS = """
        entity_type  string  0+
        entity_name  string  0+  nullable
    """


class AlterClientQuotasResponseEntryData(Structure):
    error_code: int = 0
    error_message: str | None = ""
    entity: list[AlterClientQuotasResponseEntityData] = []

    FIELDS = """
        error_code     int16                                  0+
        error_message  string                                 0+  nullable
        entity         []AlterClientQuotasResponseEntityData  0+
    """


class AlterClientQuotasResponse(Message):
    API_KEY = 49
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    throttle_time_ms: int = 0
    entries: list[AlterClientQuotasResponseEntryData] = []

    FIELDS = """
        throttle_time_ms  int32                                 0+
        entries           []AlterClientQuotasResponseEntryData  0+
    """
