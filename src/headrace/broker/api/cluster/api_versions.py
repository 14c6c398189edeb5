"""ApiVersions v0-4: which APIs, versions and features this broker has.

The first request of every connection. A client that asks in a version we do not know gets
UNSUPPORTED_VERSION in the shape of v0 with our range of this one API, and asks again (KIP-511).
Before v4 clients could not read a feature whose lowest level is 0, so those are left out.
"""

import re
from collections.abc import Mapping

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

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@api(ApiKey.API_VERSIONS, versions=range(5))
def api_versions(request: ApiVersionsRequest, call: Call) -> ApiVersionsResponse:
    if call.version >= 3:
        _note_software(request, call)
    image = call.broker.image
    levels = {**image.features, KRAFT_VERSION: call.broker.controller.log.kraft_version}
    return ApiVersionsResponse(
        api_keys=[_row(int(key)) for key in sorted(APIS)],
        supported_features=_supported(call.version),
        finalized_features_epoch=image.offset,
        finalized_features=_finalized(levels),
    )


def refuse_version() -> ApiVersionsResponse:
    """The answer, always in v0, to a version that we do not know."""
    return ApiVersionsResponse(
        error_code=UnsupportedVersion.code, api_keys=[_row(ApiKey.API_VERSIONS)]
    )


def _note_software(request: ApiVersionsRequest, call: Call) -> None:
    """Remember what the client runs; the name ends up in metrics, so it must be a plain word."""
    name, version = request.client_software_name, request.client_software_version
    if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
        raise InvalidRequest(
            f"client software {name!r} {version!r} must be letters, digits, '-' and '.', "
            "beginning and ending with a letter or digit"
        )
    call.peer.software = name, version


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
