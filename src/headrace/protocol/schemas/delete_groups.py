"""DeleteGroups: API key 42.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class DeleteGroupsRequest(Message):
    API_KEY = 42
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    groups_names: list[str] = []

    FIELDS = """
        groups_names  []string  0+
    """


class DeletableGroupResult(Structure):
    group_id: str = ""
    error_code: int = 0

    FIELDS = """
        group_id    string  0+
        error_code  int16   0+
    """


class DeleteGroupsResponse(Message):
    API_KEY = 42
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    throttle_time_ms: int = 0
    results: list[DeletableGroupResult] = []

    FIELDS = """
        throttle_time_ms  int32                   0+
        results           []DeletableGroupResult  0+
    """
