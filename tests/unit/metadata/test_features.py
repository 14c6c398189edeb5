"""The record versions that each metadata.version allows."""

import pytest

from headrace.metadata.features import (
    DEFAULT_LEVELS,
    METADATA_VERSION,
    METADATA_VERSION_NAMES,
    SUPPORTED,
    partition_version,
    register_broker_version,
)


@pytest.mark.parametrize(
    ("level", "register_broker", "partition"),
    [(7, 1, 0), (8, 2, 0), (16, 2, 0), (17, 3, 1), (22, 3, 1), (23, 3, 2), (29, 3, 2), (30, 4, 2)],
)
def test_record_versions_follow_the_level(level: int, register_broker: int, partition: int) -> None:
    assert register_broker_version(level) == register_broker
    assert partition_version(level) == partition


def test_every_supported_level_has_a_name() -> None:
    levels = SUPPORTED[METADATA_VERSION]
    assert list(METADATA_VERSION_NAMES) == list(range(levels.min_version, levels.max_version + 1))


def test_a_new_cluster_starts_at_levels_that_every_kafka_4_can_join() -> None:
    assert DEFAULT_LEVELS[METADATA_VERSION] == 25
    assert all(SUPPORTED[feature].covers(level) for feature, level in DEFAULT_LEVELS.items())
