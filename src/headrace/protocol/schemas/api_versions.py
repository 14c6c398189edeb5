"""ApiVersions: API key 18.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class ApiVersionsRequest(Message):
    API_KEY = 18
    VERSIONS = range(5)
    FLEXIBLE_FROM = 3

    client_software_name: str = ""
    client_software_version: str = ""

    FIELDS = """
        client_software_name     string  3+  ignorable
        client_software_version  string  3+  ignorable
    """


class ApiVersion(Structure):
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0

    FIELDS = """
        api_key      int16  0+
        min_version  int16  0+
        max_version  int16  0+
    """


class SupportedFeatureKey(Structure):
    name: str = ""
    min_version: int = 0
    max_version: int = 0

    FIELDS = """
        name         string  3+
        min_version  int16   3+
        max_version  int16   3+
    """


class FinalizedFeatureKey(Structure):
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0

    FIELDS = """
        name               string  3+
        max_version_level  int16   3+
        min_version_level  int16   3+
    """


class ApiVersionsResponse(Message):
    API_KEY = 18
    VERSIONS = range(5)
    FLEXIBLE_FROM = 3

    error_code: int = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: int = 0
    supported_features: list[SupportedFeatureKey] = []
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = []
    zk_migration_ready: bool = False

    FIELDS = """
        error_code                int16                  0+
        api_keys                  []ApiVersion           0+
        throttle_time_ms          int32                  1+  ignorable
        supported_features        []SupportedFeatureKey  3+  tag=0 ignorable
        finalized_features_epoch  int64                  3+  tag=1 ignorable
        finalized_features        []FinalizedFeatureKey  3+  tag=2 ignorable
        zk_migration_ready        bool                   3+  tag=3 ignorable
    """
