"""Throttle times in answers, and the APIs that quotas treat in a way of their own."""

from typing import Any

import msgspec

from headrace.protocol.api_keys import ApiKey

MUTATIONS = frozenset(
    {int(ApiKey.CREATE_TOPICS), int(ApiKey.DELETE_TOPICS), int(ApiKey.CREATE_PARTITIONS)}
)
"""The APIs whose answers contain a throttle time from the controller, for its mutations."""

EXEMPT = frozenset(
    {
        int(ApiKey.WRITE_TXN_MARKERS),
        int(ApiKey.INITIALIZE_SHARE_GROUP_STATE),
        int(ApiKey.READ_SHARE_GROUP_STATE),
        int(ApiKey.WRITE_SHARE_GROUP_STATE),
        int(ApiKey.DELETE_SHARE_GROUP_STATE),
        int(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY),
    }
)
"""Requests between brokers, whose time does not count."""

# Answers that handlers encode themselves begin with the throttle time, from these versions on.
_THROTTLE_TIME_FROM = {
    int(ApiKey.METADATA): 3,
    int(ApiKey.OFFSET_COMMIT): 3,
    int(ApiKey.HEARTBEAT): 1,
}


def with_throttle_time(answer: Any, key: int, version: int, throttle_ms: int) -> Any:
    """Return an answer with its throttle time; the given one may be shared by many clients."""
    if isinstance(answer, bytes):
        if version < _THROTTLE_TIME_FROM.get(key, version + 1):
            return answer
        return throttle_ms.to_bytes(4) + answer[4:]
    if not hasattr(answer, "throttle_time_ms"):
        return answer
    return msgspec.structs.replace(answer, throttle_time_ms=throttle_ms)
