"""ListGroups: API key 16.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class ListGroupsRequest(Message):
    API_KEY = 16
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    states_filter: list[str] = []
    types_filter: list[str] = []

    FIELDS = """
        states_filter  []string  4+
        types_filter   []string  5+
    """


class ListedGroup(Structure):
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""

    FIELDS = """
        group_id       string  0+
        protocol_type  string  0+
        group_state    string  4+  ignorable
        group_type     string  5+  ignorable
    """


class ListGroupsResponse(Message):
    API_KEY = 16
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    throttle_time_ms: int = 0
    error_code: int = 0
    groups: list[ListedGroup] = []

    FIELDS = """
        throttle_time_ms  int32          1+  ignorable
        error_code        int16          0+
        groups            []ListedGroup  0+
    """
