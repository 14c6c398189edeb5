"""FindCoordinator: API key 10.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class FindCoordinatorRequest(Message):
    API_KEY = 10
    VERSIONS = range(7)
    FLEXIBLE_FROM = 3

    key: str = ""
    key_type: int = 0
    coordinator_keys: list[str] = []

    FIELDS = """
        key               string    0-3
        key_type          int8      1+
        coordinator_keys  []string  4+
    """


class Coordinator(Structure):
    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = ""

    FIELDS = """
        key            string  4+
        node_id        int32   4+
        host           string  4+
        port           int32   4+
        error_code     int16   4+
        error_message  string  4+  nullable ignorable
    """


class FindCoordinatorResponse(Message):
    API_KEY = 10
    VERSIONS = range(7)
    FLEXIBLE_FROM = 3

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: list[Coordinator] = []

    FIELDS = """
        throttle_time_ms  int32          1+   ignorable
        error_code        int16          0-3
        error_message     string         1-3  nullable ignorable
        node_id           int32          0-3
        host              string         0-3
        port              int32          0-3
        coordinators      []Coordinator  4+
    """
