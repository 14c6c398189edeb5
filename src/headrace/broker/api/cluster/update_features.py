"""UpdateFeatures v0-2: move the cluster to other feature levels, all of those named or none.

v0 says that a downgrade is meant by a flag, v1 by its kind; v2 has no results per feature.
"""

from headrace.broker.api.registry import Call, api
from headrace.controller import features
from headrace.controller.features import FeatureUpdate, UpgradeType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


@api(ApiKey.UPDATE_FEATURES, versions=range(3))
async def update_features(request: UpdateFeaturesRequest, call: Call) -> UpdateFeaturesResponse:
    controller = call.broker.controller
    updates = [_update(one, call.version) for one in request.feature_updates]
    await controller.submit(
        lambda image: features.update_features(
            image,
            updates,
            controller.log.kraft_version,
            controller.defaults,
            validate_only=request.validate_only,
        )
    )
    results = [UpdatableFeatureResult(feature=one.feature) for one in updates]
    return UpdateFeaturesResponse(error_message=None, results=results if call.version < 2 else [])


def _update(update: FeatureUpdateKey, version: int) -> FeatureUpdate:
    upgrade_type = update.upgrade_type
    if version == 0:
        may_lower = update.allow_downgrade
        upgrade_type = UpgradeType.SAFE_DOWNGRADE if may_lower else UpgradeType.UPGRADE
    return FeatureUpdate(update.feature, update.max_version_level, upgrade_type)
