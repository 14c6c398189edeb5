"""UpdateFeatures: move the cluster to feature levels that every node supports."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from headrace.controller.decision import ClusterDefaults, Decision
from headrace.errors import InvalidUpdateVersion
from headrace.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    KRAFT_VERSION,
    LEVELS_THAT_CHANGED_RECORDS,
    METADATA_VERSION,
    METADATA_VERSION_NAMES,
    SUPPORTED,
    VersionRange,
)
from headrace.metadata.image import MetadataImage, ResourceType
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.records.metadata import ConfigRecord, FeatureLevelRecord

_MIN_ISR = "min.insync.replicas"
_UNSUPPORTED = VersionRange(0, 0)
_ELR_NEEDS_METADATA_VERSION = 23


class UpgradeType(IntEnum):
    """The kind of change that the client accepts."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A new level of one feature; 0 disables it."""

    feature: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


def update_features(
    image: MetadataImage,
    updates: Sequence[FeatureUpdate],
    kraft_version: int,
    defaults: ClusterDefaults,
    *,
    validate_only: bool = False,
) -> Decision[None]:
    """Update all features or none; raise for the first update that is invalid."""
    proposed = {**image.features, **{update.feature: update.level for update in updates}}
    records: list[VersionedRecord] = []
    for update in updates:
        if update.feature == KRAFT_VERSION:
            _check_kraft_version(update, kraft_version)
            continue
        _check(image, update, proposed)
        records.append(VersionedRecord(FeatureLevelRecord(update.feature, update.level)))
        records.extend(_elr_records(image, update, defaults))
    return Decision([] if validate_only else records, None)


def _check(image: MetadataImage, update: FeatureUpdate, proposed: Mapping[str, int]) -> None:
    present = image.features.get(update.feature, 0)
    if update.upgrade_type not in list(UpgradeType):
        raise _refusal(update, f"upgrade type {update.upgrade_type} is unknown")
    if update.level < 0:
        raise _refusal(update, "a level cannot be below 0")
    _check_supported(image, update)
    if update.level < present and update.upgrade_type == UpgradeType.UPGRADE:
        raise _refusal(
            update, f"it is at level {present} now, and the upgrade type does not allow a downgrade"
        )
    if update.level > present and update.upgrade_type != UpgradeType.UPGRADE:
        raise _refusal(update, f"it is at level {present} now, so this is not a downgrade")
    if update.feature == METADATA_VERSION and update.level < present:
        _check_metadata_downgrade(update, present)
    if (
        proposed.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0
        and proposed.get(METADATA_VERSION, 0) < _ELR_NEEDS_METADATA_VERSION
    ):
        raise _refusal(
            update,
            f"{ELIGIBLE_LEADER_REPLICAS_VERSION} needs {METADATA_VERSION} "
            f"{_ELR_NEEDS_METADATA_VERSION} or higher",
        )


def _check_supported(image: MetadataImage, update: FeatureUpdate) -> None:
    nodes: list[tuple[str, Mapping[str, VersionRange]]] = [("this controller", SUPPORTED)]
    nodes += [(f"broker {one.id}", one.features) for one in image.brokers.values()]
    nodes += [(f"controller {one.id}", one.features) for one in image.controllers.values()]
    for node, features in nodes:
        levels = features.get(update.feature, _UNSUPPORTED)
        if levels == _UNSUPPORTED:
            raise _refusal(update, f"{node} does not support this feature")
        # Level 0 disables the feature, which every node supports.
        if update.level and not levels.covers(update.level):
            raise _refusal(
                update, f"{node} supports levels {levels.min_version} to {levels.max_version}"
            )


def _check_metadata_downgrade(update: FeatureUpdate, present: int) -> None:
    if update.level not in METADATA_VERSION_NAMES:
        raise _refusal(update, "the level does not exist")
    crossed = [level for level in LEVELS_THAT_CHANGED_RECORDS if update.level < level <= present]
    if crossed:
        name = METADATA_VERSION_NAMES[max(crossed)]
        raise _refusal(
            update, f"level {max(crossed)} ({name}) added records that lower levels cannot read"
        )


def _check_kraft_version(update: FeatureUpdate, present: int) -> None:
    """Check the quorum's own feature, whose level is in the control records of the log."""
    if update.level < present:
        raise _refusal(update, f"it is at level {present} now, and can only be raised")
    if not SUPPORTED[KRAFT_VERSION].covers(update.level):
        raise _refusal(update, "this controller does not support it")


def raised_kraft_version(request: Any, present: int) -> int | None:
    """Return the level to which a request raises kraft.version; the quorum has to do that."""
    if request.validate_only:
        return None
    for one in request.feature_updates:
        if one.feature == KRAFT_VERSION and one.max_version_level > present:
            return int(one.max_version_level)
    return None


def _elr_records(
    image: MetadataImage, update: FeatureUpdate, defaults: ClusterDefaults
) -> list[VersionedRecord]:
    """Set one min.insync.replicas for the cluster, on which eligible leaders depend."""
    starts = update.feature == ELIGIBLE_LEADER_REPLICAS_VERSION and update.level > 0
    if not starts or image.uses_elr:
        return []
    records = []
    if _MIN_ISR not in image.configs_of(ResourceType.BROKER, ""):
        value = str(defaults.min_insync_replicas)
        records.append(ConfigRecord(ResourceType.BROKER, "", _MIN_ISR, value))
    records += [
        ConfigRecord(ResourceType.BROKER, resource.name, _MIN_ISR, None)
        for resource, configs in image.configs.items()
        if resource.type == ResourceType.BROKER and resource.name and _MIN_ISR in configs
    ]
    return [VersionedRecord(record) for record in records]


def _refusal(update: FeatureUpdate, reason: str) -> InvalidUpdateVersion:
    return InvalidUpdateVersion(f"{update.feature} cannot be set to level {update.level}: {reason}")
