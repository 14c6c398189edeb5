"""ApiVersions v0-4: the APIs, versions and features of this broker.

This is the first request of every connection. For an unknown version the response is
UNSUPPORTED_VERSION in v0 with the range of this API, and the client retries (KIP-511). Before v4
clients cannot read a feature whose lowest level is 0, so such features are omitted.

As in Kafka, the telemetry APIs are advertised only while a client metrics subscription exists: a
client that finds them requests its subscription, and librdkafka logs a line about it.
"""

import re
from collections.abc import Mapping
from functools import cache

from headrace.broker.api.registry import APIS, Call, api
from headrace.errors import InvalidRequest, UnsupportedVersion
from headrace.metadata.features import KRAFT_VERSION, SUPPORTED
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@api(ApiKey.API_VERSIONS, versions=range(5), rights=())
def api_versions(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    if call.version >= 3:
        _note_software(request, call)
    broker, image = call.broker, call.broker.image
    levels = {**image.features, KRAFT_VERSION: broker.controller.kraft_version}
    return ApiVersionsResponse(
        api_keys=_rows(
            with_telemetry=broker.settings.headrace_telemetry_enable
            or broker.telemetry.is_subscribed(image.configs)
        ),
        supported_features=_supported(call.version),
        finalized_features_epoch=image.offset,
        finalized_features=_finalized(levels),
    )


def refuse_version() -> ApiVersionsResponse:
    """Return the response, always in v0, to an unknown version."""
    return ApiVersionsResponse(
        error_code=UnsupportedVersion.code, api_keys=[_row(ApiKey.API_VERSIONS)]
    )


def _note_software(request: ApiVersionsRequest, call: Call) -> None:
    """Store the software of the client, whose name must be valid as a label of metrics."""
    name, version = request.client_software_name, request.client_software_version
    if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
        raise InvalidRequest(
            f"client software {name!r} {version!r} must be letters, digits, '-' and '.', "
            "beginning and ending with a letter or digit"
        )
    call.peer.software = name, version


@cache
def _rows(*, with_telemetry: bool) -> list[ApiVersion]:
    return [_row(key) for key in sorted(APIS) if with_telemetry or key not in _TELEMETRY]


def _row(key: int) -> ApiVersion:
    first, last = APIS[key].advertised
    return ApiVersion(api_key=key, min_version=first, max_version=last)


def _supported(version: int) -> list[SupportedFeatureKey]:
    return [
        SupportedFeatureKey(name=name, min_version=levels[0], max_version=levels[1])
        for name, levels in SUPPORTED.items()
        if version >= 4 or levels[0] > 0
    ]


def _finalized(levels: Mapping[str, int]) -> list[FinalizedFeatureKey]:
    return [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in levels.items()
        if level > 0
    ]
