"""DescribeConfigs: API key 32.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class DescribeConfigsResource(Structure):
    resource_type: Annotated[Int8, "0+"] = 0
    resource_name: Annotated[str, "0+"] = ""
    configuration_keys: Annotated[list[str] | None, "0+"] = []


class DescribeConfigsRequest(Message):
    API_KEY = 32
    VERSIONS = range(1, 5)
    FLEXIBLE_FROM = 4

    resources: Annotated[list[DescribeConfigsResource], "0+"] = []
    include_synonyms: Annotated[bool, "1+"] = False
    include_documentation: Annotated[bool, "3+"] = False


class DescribeConfigsSynonym(Structure):
    name: Annotated[str, "1+"] = ""
    value: Annotated[str | None, "1+"] = ""
    source: Annotated[Int8, "1+"] = 0


class DescribeConfigsResourceResult(Structure):
    name: Annotated[str, "0+"] = ""
    value: Annotated[str | None, "0+"] = ""
    read_only: Annotated[bool, "0+"] = False
    config_source: Annotated[Int8, "1+ ignorable"] = -1
    is_sensitive: Annotated[bool, "0+"] = False
    synonyms: Annotated[list[DescribeConfigsSynonym], "1+ ignorable"] = []
    config_type: Annotated[Int8, "3+ ignorable"] = 0
    documentation: Annotated[str | None, "3+ ignorable"] = ""


class DescribeConfigsResult(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
    resource_type: Annotated[Int8, "0+"] = 0
    resource_name: Annotated[str, "0+"] = ""
    configs: Annotated[list[DescribeConfigsResourceResult], "0+"] = []


class DescribeConfigsResponse(Message):
    API_KEY = 32
    VERSIONS = range(1, 5)
    FLEXIBLE_FROM = 4

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    results: Annotated[list[DescribeConfigsResult], "0+"] = []
