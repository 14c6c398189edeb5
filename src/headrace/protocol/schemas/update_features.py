"""UpdateFeatures: API key 57.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class FeatureUpdateKey(Structure):
    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False
    upgrade_type: int = 1

    FIELDS = """
        feature            string  0+
        max_version_level  int16   0+
        allow_downgrade    bool    0
        upgrade_type       int8    1+
    """


class UpdateFeaturesRequest(Message):
    API_KEY = 57
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    timeout_ms: int = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: bool = False

    FIELDS = """
        timeout_ms       int32               0+
        feature_updates  []FeatureUpdateKey  0+
        validate_only    bool                1+
    """


class UpdatableFeatureResult(Structure):
    feature: str = ""
    error_code: int = 0
    error_message: str | None = ""

    FIELDS = """
        feature        string  0+
        error_code     int16   0+
        error_message  string  0+  nullable
    """


class UpdateFeaturesResponse(Message):
    API_KEY = 57
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[UpdatableFeatureResult] = []

    FIELDS = """
        throttle_time_ms  int32                     0+
        error_code        int16                     0+
        error_message     string                    0+   nullable
        results           []UpdatableFeatureResult  0-1  ignorable
    """
