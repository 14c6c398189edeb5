"""JoinGroup: API key 11.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class JoinGroupRequestProtocol(Structure):
    name: str = ""
    metadata: bytes = b""

    FIELDS = """
        name      string  0+
        metadata  bytes   0+
    """


class JoinGroupRequest(Message):
    API_KEY = 11
    VERSIONS = range(10)
    FLEXIBLE_FROM = 6

    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: str | None = None

    FIELDS = """
        group_id              string                      0+
        session_timeout_ms    int32                       0+
        rebalance_timeout_ms  int32                       1+  ignorable
        member_id             string                      0+
        group_instance_id     string                      5+  nullable
        protocol_type         string                      0+
        protocols             []JoinGroupRequestProtocol  0+
        reason                string                      8+  nullable ignorable
    """


class JoinGroupResponseMember(Structure):
    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""

    FIELDS = """
        member_id          string  0+
        group_instance_id  string  5+  nullable ignorable
        metadata           bytes   0+
    """


class JoinGroupResponse(Message):
    API_KEY = 11
    VERSIONS = range(10)
    FLEXIBLE_FROM = 6

    throttle_time_ms: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: list[JoinGroupResponseMember] = []

    FIELDS = """
        throttle_time_ms  int32                      2+  ignorable
        error_code        int16                      0+
        generation_id     int32                      0+
        protocol_type     string                     7+  nullable ignorable
        protocol_name     string                     0+  nullable=7+
        leader            string                     0+
        skip_assignment   bool                       9+
        member_id         string                     0+
        members           []JoinGroupResponseMember  0+
    """
