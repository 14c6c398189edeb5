"""DescribeCluster: API key 60.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class DescribeClusterRequest(Message):
    API_KEY = 60
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False

    FIELDS = """
        include_cluster_authorized_operations  bool  0+
        endpoint_type                          int8  1+
        include_fenced_brokers                 bool  2+
    """


class DescribeClusterBroker(Structure):
    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False

    FIELDS = """
        broker_id  int32   0+
        host       string  0+
        port       int32   0+
        rack       string  0+  nullable
        is_fenced  bool    2+
    """


class DescribeClusterResponse(Message):
    API_KEY = 60
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: int = -2147483648

    FIELDS = """
        throttle_time_ms               int32                    0+
        error_code                     int16                    0+
        error_message                  string                   0+  nullable
        endpoint_type                  int8                     1+
        cluster_id                     string                   0+
        controller_id                  int32                    0+
        brokers                        []DescribeClusterBroker  0+
        cluster_authorized_operations  int32                    0+
    """
