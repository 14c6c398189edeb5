"""UpdateFeatures: forward when all can follow, back when nothing would be lost."""

import pytest

from headrace.controller.decision import ClusterDefaults
from headrace.controller.features import FeatureUpdate, UpgradeType, update_features
from headrace.errors import InvalidUpdateVersion
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas.records.metadata import (
    BrokerFeature,
    ConfigRecord,
    ControllerFeature,
    RegisterControllerRecord,
)
from tests.builders.metadata_images import applied, image_with, registered, replayed

DEFAULTS = ClusterDefaults(min_insync_replicas=2)
IMAGE = image_with()
SAFE, UNSAFE = UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE


def updated(*updates: FeatureUpdate, image: MetadataImage = IMAGE) -> MetadataImage:
    return applied(image, update_features(image, updates, 1, DEFAULTS))


def test_features_go_up_together() -> None:
    image = updated(FeatureUpdate("metadata.version", 30), FeatureUpdate("share.version", 1))
    assert image.metadata_version == 30
    assert image.features["share.version"] == 1


def test_a_feature_can_be_switched_off() -> None:
    image = updated(FeatureUpdate("group.version", 0, SAFE))
    assert "group.version" not in image.features


def test_an_update_can_be_tried_out() -> None:
    updates = [FeatureUpdate("metadata.version", 30)]
    decision = update_features(IMAGE, updates, 1, DEFAULTS, validate_only=True)
    assert list(decision.records) == []


def test_metadata_may_go_back_where_its_records_did_not_change() -> None:
    assert updated(FeatureUpdate("metadata.version", 24, SAFE)).metadata_version == 24


@pytest.mark.parametrize(
    "update",
    [
        FeatureUpdate("metadata.version", 31),
        FeatureUpdate("metadata.version", 24),
        FeatureUpdate("metadata.version", 22, SAFE),
        FeatureUpdate("metadata.version", 22, UNSAFE),
        FeatureUpdate("metadata.version", 0, SAFE),
        FeatureUpdate("metadata.version", -1),
        FeatureUpdate("metadata.version", 30, SAFE),
        FeatureUpdate("metadata.version", 30, 9),
        FeatureUpdate("group.version", 0),
        FeatureUpdate("group.version", 2),
        FeatureUpdate("unknown.version", 1),
        FeatureUpdate("kraft.version", 0),
    ],
)
def test_invalid_updates_are_rejected(update: FeatureUpdate) -> None:
    with pytest.raises(InvalidUpdateVersion):
        updated(update)


def test_an_invalid_update_rejects_all() -> None:
    with pytest.raises(InvalidUpdateVersion, match="unknown"):
        updated(FeatureUpdate("metadata.version", 30), FeatureUpdate("unknown.version", 1))


def test_every_broker_must_be_able_to_follow() -> None:
    old = registered(2, features=[BrokerFeature("metadata.version", 7, 25)])
    with pytest.raises(InvalidUpdateVersion, match="broker 2 supports levels 7 to 25"):
        updated(FeatureUpdate("metadata.version", 30), image=replayed(IMAGE, [old]))


def test_every_controller_and_every_fenced_broker_must_be_able_to_follow() -> None:
    update = FeatureUpdate("metadata.version", 30)
    standby = RegisterControllerRecord(
        3, b"c" * 16, features=[ControllerFeature("metadata.version", 7, 27)]
    )
    with pytest.raises(InvalidUpdateVersion, match="controller 3 supports levels 7 to 27"):
        updated(update, image=replayed(IMAGE, [standby]))
    stopped = registered(2, fenced=True, features=[BrokerFeature("metadata.version", 7, 25)])
    with pytest.raises(InvalidUpdateVersion, match="broker 2"):
        updated(update, image=replayed(IMAGE, [stopped]))


def test_eligible_leaders_pin_min_insync_replicas() -> None:
    image = replayed(IMAGE, [ConfigRecord(4, "1", "min.insync.replicas", "3")])
    image = updated(FeatureUpdate("eligible.leader.replicas.version", 1), image=image)
    assert image.configs_of(4, "") == {"min.insync.replicas": "2"}
    assert image.configs_of(4, "1") == {}
    assert image.uses_elr


def test_eligible_leaders_need_a_metadata_version_that_supports_them() -> None:
    image = image_with(levels={"metadata.version": 22})
    with pytest.raises(InvalidUpdateVersion, match="23"):
        updated(FeatureUpdate("eligible.leader.replicas.version", 1), image=image)
