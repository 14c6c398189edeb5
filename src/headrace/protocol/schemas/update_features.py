"""UpdateFeatures: API key 57.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class FeatureUpdateKey(Structure):
    feature: Annotated[str, "0+"] = ""
    max_version_level: Annotated[Int16, "0+"] = 0
    allow_downgrade: Annotated[bool, "0"] = False
    upgrade_type: Annotated[Int8, "1+"] = 1


class UpdateFeaturesRequest(Message):
    API_KEY = 57
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    timeout_ms: Annotated[Int32, "0+"] = 60000
    feature_updates: Annotated[list[FeatureUpdateKey], "0+"] = []
    validate_only: Annotated[bool, "1+"] = False


class UpdatableFeatureResult(Structure):
    feature: Annotated[str, "0+"] = ""
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""


class UpdateFeaturesResponse(Message):
    API_KEY = 57
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""
    results: Annotated[list[UpdatableFeatureResult], "0-1 ignorable"] = []
