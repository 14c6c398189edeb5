"""CreateTopics: API key 19.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class CreatableReplicaAssignment(Structure):
    partition_index: int = 0
    broker_ids: list[int] = []

    FIELDS = """
        partition_index  int32    0+
        broker_ids       []int32  0+
    """


class CreatableTopicConfig(Structure):
    name: str = ""
    value: str | None = ""

    FIELDS = """
        name   string  0+
        value  string  0+  nullable
    """


class CreatableTopic(Structure):
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []

    FIELDS = """
        name                string                        0+
        num_partitions      int32                         0+
        replication_factor  int16                         0+
        assignments         []CreatableReplicaAssignment  0+
        configs             []CreatableTopicConfig        0+
    """


class CreateTopicsRequest(Message):
    API_KEY = 19
    VERSIONS = range(2, 8)
    FLEXIBLE_FROM = 5

    topics: list[CreatableTopic] = []
    timeout_ms: int = 60000
    validate_only: bool = False

    FIELDS = """
        topics         []CreatableTopic  0+
        timeout_ms     int32             0+
        validate_only  bool              1+
    """


class CreatableTopicConfigs(Structure):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False

    FIELDS = """
        name           string  5+
        value          string  5+  nullable
        read_only      bool    5+
        config_source  int8    5+  ignorable
        is_sensitive   bool    5+
    """


class CreatableTopicResult(Structure):
    name: str = ""
    topic_id: Uuid = ZERO
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[CreatableTopicConfigs] | None = []

    FIELDS = """
        name                     string                   0+
        topic_id                 uuid                     7+  ignorable
        error_code               int16                    0+
        error_message            string                   1+  nullable ignorable
        topic_config_error_code  int16                    5+  tag=0 ignorable
        num_partitions           int32                    5+  ignorable
        replication_factor       int16                    5+  ignorable
        configs                  []CreatableTopicConfigs  5+  nullable ignorable
    """


class CreateTopicsResponse(Message):
    API_KEY = 19
    VERSIONS = range(2, 8)
    FLEXIBLE_FROM = 5

    throttle_time_ms: int = 0
    topics: list[CreatableTopicResult] = []

    FIELDS = """
        throttle_time_ms  int32                   2+  ignorable
        topics            []CreatableTopicResult  0+
    """
