"""UpdateFeatures v0-2: change feature levels of the cluster, all or none of them.

v0 allows a downgrade by a flag, v1 by a kind; v2 has no results per feature.
"""

from headrace.broker.api.registry import Call, api
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.ALTER, ResourceType.CLUSTER),)


@api(ApiKey.UPDATE_FEATURES, versions=range(3), rights=_RIGHTS)
async def update_features(request: UpdateFeaturesRequest, call: Call) -> UpdateFeaturesResponse:
    response: UpdateFeaturesResponse = await call.broker.controller.ask(
        request, call.version, call.caller
    )
    return response
