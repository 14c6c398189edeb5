"""Metadata: API key 3.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class MetadataRequestTopic(Structure):
    topic_id: Uuid = ZERO
    name: str | None = ""

    FIELDS = """
        topic_id  uuid    10+  ignorable
        name      string  0+   nullable=10+
    """


class MetadataRequest(Message):
    API_KEY = 3
    VERSIONS = range(14)
    FLEXIBLE_FROM = 9

    topics: list[MetadataRequestTopic] | None = []
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False

    FIELDS = """
        topics                                 []MetadataRequestTopic  0+    nullable=1+
        allow_auto_topic_creation              bool                    4+
        include_cluster_authorized_operations  bool                    8-10
        include_topic_authorized_operations    bool                    8+
    """


class MetadataResponseBroker(Structure):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None

    FIELDS = """
        node_id  int32   0+
        host     string  0+
        port     int32   0+
        rack     string  1+  nullable ignorable
    """


class MetadataResponsePartition(Structure):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = []
    isr_nodes: list[int] = []
    offline_replicas: list[int] = []

    FIELDS = """
        error_code        int16    0+
        partition_index   int32    0+
        leader_id         int32    0+
        leader_epoch      int32    7+  ignorable
        replica_nodes     []int32  0+
        isr_nodes         []int32  0+
        offline_replicas  []int32  5+  ignorable
    """


class MetadataResponseTopic(Structure):
    error_code: int = 0
    name: str | None = ""
    topic_id: Uuid = ZERO
    is_internal: bool = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: int = -2147483648

    FIELDS = """
        error_code                   int16                        0+
        name                         string                       0+   nullable=12+
        topic_id                     uuid                         10+  ignorable
        is_internal                  bool                         1+   ignorable
        partitions                   []MetadataResponsePartition  0+
        topic_authorized_operations  int32                        8+
    """


class MetadataResponse(Message):
    API_KEY = 3
    VERSIONS = range(14)
    FLEXIBLE_FROM = 9

    throttle_time_ms: int = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: str | None = None
    controller_id: int = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0

    FIELDS = """
        throttle_time_ms               int32                     3+    ignorable
        brokers                        []MetadataResponseBroker  0+
        cluster_id                     string                    2+    nullable ignorable
        controller_id                  int32                     1+    ignorable
        topics                         []MetadataResponseTopic   0+
        cluster_authorized_operations  int32                     8-10
        error_code                     int16                     13+   ignorable
    """
