"""ApiVersions: API key 18.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure


class ApiVersionsRequest(Message):
    API_KEY = 18
    VERSIONS = range(5)
    FLEXIBLE_FROM = 3

    client_software_name: Annotated[str, "3+ ignorable"] = ""
    client_software_version: Annotated[str, "3+ ignorable"] = ""


class ApiVersion(Structure):
    api_key: Annotated[Int16, "0+"] = 0
    min_version: Annotated[Int16, "0+"] = 0
    max_version: Annotated[Int16, "0+"] = 0


class SupportedFeatureKey(Structure):
    name: Annotated[str, "3+"] = ""
    min_version: Annotated[Int16, "3+"] = 0
    max_version: Annotated[Int16, "3+"] = 0


class FinalizedFeatureKey(Structure):
    name: Annotated[str, "3+"] = ""
    max_version_level: Annotated[Int16, "3+"] = 0
    min_version_level: Annotated[Int16, "3+"] = 0


class ApiVersionsResponse(Message):
    API_KEY = 18
    VERSIONS = range(5)
    FLEXIBLE_FROM = 3

    error_code: Annotated[Int16, "0+"] = 0
    api_keys: Annotated[list[ApiVersion], "0+"] = []
    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    supported_features: Annotated[list[SupportedFeatureKey], "3+ tag=0 ignorable"] = []
    finalized_features_epoch: Annotated[Int64, "3+ tag=1 ignorable"] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], "3+ tag=2 ignorable"] = []
    zk_migration_ready: Annotated[bool, "3+ tag=3 ignorable"] = False
