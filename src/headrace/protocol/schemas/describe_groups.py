"""DescribeGroups: API key 15.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class DescribeGroupsRequest(Message):
    API_KEY = 15
    VERSIONS = range(7)
    FLEXIBLE_FROM = 5

    groups: list[str] = []
    include_authorized_operations: bool = False

    FIELDS = """
        groups                         []string  0+
        include_authorized_operations  bool      3+
    """


class DescribedGroupMember(Structure):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""

    FIELDS = """
        member_id          string  0+
        group_instance_id  string  4+  nullable ignorable
        client_id          string  0+
        client_host        string  0+
        member_metadata    bytes   0+
        member_assignment  bytes   0+
    """


class DescribedGroup(Structure):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: int = -2147483648

    FIELDS = """
        error_code             int16                   0+
        error_message          string                  6+  nullable
        group_id               string                  0+
        group_state            string                  0+
        protocol_type          string                  0+
        protocol_data          string                  0+
        members                []DescribedGroupMember  0+
        authorized_operations  int32                   3+
    """


class DescribeGroupsResponse(Message):
    API_KEY = 15
    VERSIONS = range(7)
    FLEXIBLE_FROM = 5

    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = []

    FIELDS = """
        throttle_time_ms  int32             1+  ignorable
        groups            []DescribedGroup  0+
    """
