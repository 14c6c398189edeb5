"""Levels of new clusters: those of Kafka's releases, and ours."""

import pytest

from headrace.errors import InvalidConfig
from headrace.metadata.log.release_levels import (
    CLUSTER_LEVELS,
    metadata_version_of,
    new_cluster_levels,
)

# As `kafka-storage version-mapping` of Kafka 4.3.1 prints them: transaction, group, eligible
# leader replicas, share and streams version.
KAFKAS = {
    "3.3-IV3": (7, 0, 0, 0, 0, 0),
    "3.9": (21, 0, 0, 0, 0, 0),
    "4.0-IV0": (22, 0, 1, 0, 0, 0),
    "4.0-IV1": (23, 0, 1, 0, 0, 0),
    "4.0-IV2": (24, 2, 1, 0, 0, 0),
    "4.0": (25, 2, 1, 0, 0, 0),
    "4.0.2": (25, 2, 1, 0, 0, 0),
    "4.1-IV0": (26, 2, 1, 1, 0, 0),
    "4.1": (27, 2, 1, 1, 0, 0),
    "4.2-IV0": (28, 2, 1, 1, 1, 0),
    "4.2": (29, 2, 1, 1, 1, 1),
    "4.3": (30, 2, 1, 1, 1, 1),
}
FEATURES = (
    "metadata.version",
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
    "share.version",
    "streams.version",
)


@pytest.mark.parametrize("release", KAFKAS)
def test_a_release_has_kafkas_levels(release: str) -> None:
    levels = new_cluster_levels(release, {})
    assert tuple(levels.get(feature, 0) for feature in FEATURES) == KAFKAS[release]


def test_a_new_cluster_elects_eligible_leaders_and_can_be_joined_by_kafka_4_2() -> None:
    assert new_cluster_levels(None, {}) == dict(CLUSTER_LEVELS)
    assert CLUSTER_LEVELS["metadata.version"] == 25
    assert CLUSTER_LEVELS["eligible.leader.replicas.version"] == 1


def test_single_features_override_the_release() -> None:
    levels = new_cluster_levels("4.0", {"share.version": 1, "group.version": 0})
    assert (levels["share.version"], levels["group.version"]) == (1, 0)


def test_a_metadata_version_brings_the_levels_of_its_release() -> None:
    assert new_cluster_levels(None, {"metadata.version": 21}) == {"metadata.version": 21}


def test_the_version_of_the_quorum_is_checked_and_no_record() -> None:
    levels = new_cluster_levels(None, {"kraft.version": 0}, has_static_quorum=True)
    assert "kraft.version" not in levels


@pytest.mark.parametrize(
    ("release", "features", "static", "message"),
    [
        ("9.9", {}, False, "not a release between 3.3-IV3 and 4.3-IV0"),
        ("4.0-IV9", {}, False, "Did you mean 4.0-IV"),
        ("", {}, False, "not a release"),
        ("4.0", {"metadata.version": 25}, False, "not both"),
        (None, {"metadata.version": 31}, False, "must be between 7 and 30"),
        (None, {"rack.version": 1}, False, "rack.version is not a feature"),
        ("3.9", {"eligible.leader.replicas.version": 1}, False, "needs metadata.version=23"),
        (None, {"kraft.version": 0}, False, "controller.quorum.voters is not set"),
        (None, {"kraft.version": 1}, True, "controller.quorum.voters is set"),
    ],
)
def test_levels_that_exclude_each_other_are_refused(
    release: str | None, features: dict[str, int], static: bool, message: str
) -> None:
    with pytest.raises(InvalidConfig) as caught:
        new_cluster_levels(release, features, has_static_quorum=static)
    assert message in str(caught.value)


def test_a_release_is_its_last_level() -> None:
    assert [metadata_version_of(release) for release in ("4.0", "4.0.1", "4.0-IV0")] == [25, 25, 22]
