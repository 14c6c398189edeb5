"""DescribeConfigs: API key 32.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class DescribeConfigsResource(Structure):
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = []

    FIELDS = """
        resource_type       int8      0+
        resource_name       string    0+
        configuration_keys  []string  0+  nullable
    """


class DescribeConfigsRequest(Message):
    API_KEY = 32
    VERSIONS = range(1, 5)
    FLEXIBLE_FROM = 4

    resources: list[DescribeConfigsResource] = []
    include_synonyms: bool = False
    include_documentation: bool = False

    FIELDS = """
        resources              []DescribeConfigsResource  0+
        include_synonyms       bool                       1+
        include_documentation  bool                       3+
    """


class DescribeConfigsSynonym(Structure):
    name: str = ""
    value: str | None = ""
    source: int = 0

    FIELDS = """
        name    string  1+
        value   string  1+  nullable
        source  int8    1+
    """


class DescribeConfigsResourceResult(Structure):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: int = 0
    documentation: str | None = ""

    FIELDS = """
        name           string                    0+
        value          string                    0+  nullable
        read_only      bool                      0+
        config_source  int8                      1+  ignorable
        is_sensitive   bool                      0+
        synonyms       []DescribeConfigsSynonym  1+  ignorable
        config_type    int8                      3+  ignorable
        documentation  string                    3+  nullable ignorable
    """


class DescribeConfigsResult(Structure):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = []

    FIELDS = """
        error_code     int16                            0+
        error_message  string                           0+  nullable
        resource_type  int8                             0+
        resource_name  string                           0+
        configs        []DescribeConfigsResourceResult  0+
    """


class DescribeConfigsResponse(Message):
    API_KEY = 32
    VERSIONS = range(1, 5)
    FLEXIBLE_FROM = 4

    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = []

    FIELDS = """
        throttle_time_ms  int32                    0+
        results           []DescribeConfigsResult  0+
    """
