"""The levels of features in a new cluster: of a release of Kafka, or our own choice.

A cluster formatted for a release has the features that this release enables by default, so that
its nodes can join.
"""

from collections.abc import Mapping
from types import MappingProxyType

from headrace.errors import InvalidConfig
from headrace.metadata.features import (
    DEFAULT_LEVELS,
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    GROUP_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_NAMES,
    SHARE_VERSION,
    STREAMS_VERSION,
    SUPPORTED,
    TRANSACTION_VERSION,
)
from headrace.settings.definitions import nearest

CLUSTER_LEVELS: Mapping[str, int] = MappingProxyType(
    {**DEFAULT_LEVELS, ELIGIBLE_LEADER_REPLICAS_VERSION: 1}
)
"""The levels of a new cluster that other nodes can join: decision 32 has the reason."""

# The metadata.version from which a release enables a feature, and the level that it enables.
_ENABLED_FROM = {
    GROUP_VERSION: (22, 1),
    TRANSACTION_VERSION: (24, 2),
    ELIGIBLE_LEADER_REPLICAS_VERSION: (26, 1),
    SHARE_VERSION: (28, 1),
    STREAMS_VERSION: (29, 1),
}

_ELIGIBLE_LEADERS_NEED = 23


def new_cluster_levels(
    release: str | None,
    features: Mapping[str, int],
    *,
    default: Mapping[str, int] = CLUSTER_LEVELS,
    has_static_quorum: bool = False,
) -> dict[str, int]:
    """Return the levels by `--release-version` and `--feature`; raise if they exclude each other.

    Without a release, the levels are `default`. `kraft.version` is no record of the metadata log:
    it follows from the quorum.
    """
    for feature, level in features.items():
        _check_supported(feature, level)
    _check_kraft_version(features, has_static_quorum=has_static_quorum)
    levels = {**_base(release, features, default), **features}
    levels.pop(KRAFT_VERSION, None)
    needed = _ELIGIBLE_LEADERS_NEED
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION) and levels[METADATA_VERSION] < needed:
        raise InvalidConfig(
            f"{ELIGIBLE_LEADER_REPLICAS_VERSION}=1 needs {METADATA_VERSION}={needed} or later, "
            f"which is {METADATA_VERSION_NAMES[needed]}"
        )
    return levels


def metadata_version_of(release: str) -> int:
    """Return the level of a release: `4.0` is its last one, `4.0-IV1` an earlier one."""
    numbers = release.partition("-")[0].split(".")
    branch = ".".join(numbers[:2])
    found = {name: level for level, name in METADATA_VERSION_NAMES.items()}
    if release in found:
        return found[release]
    levels = [level for name, level in found.items() if name.startswith(f"{branch}-")]
    if "-" in release or len(numbers) > 3 or not levels:
        known = list(METADATA_VERSION_NAMES.values())
        raise InvalidConfig(
            f"{release!r} is not a release between {known[0]} and {known[-1]}"
            f"{nearest(release, known)}"
        )
    return max(levels)


def _base(
    release: str | None, features: Mapping[str, int], default: Mapping[str, int]
) -> Mapping[str, int]:
    if METADATA_VERSION in features:
        if release is not None:
            raise InvalidConfig(
                f"give --release-version or --feature {METADATA_VERSION}=LEVEL, not both"
            )
        return _levels_from(features[METADATA_VERSION])
    return default if release is None else _levels_from(metadata_version_of(release))


def _levels_from(metadata_version: int) -> dict[str, int]:
    """Return the levels that Kafka enables by default at a metadata.version."""
    enabled = {
        feature: level
        for feature, (first, level) in _ENABLED_FROM.items()
        if metadata_version >= first
    }
    return {METADATA_VERSION: metadata_version, **enabled}


def _check_supported(feature: str, level: int) -> None:
    if feature not in SUPPORTED:
        raise InvalidConfig(f"{feature} is not a feature; known are {', '.join(sorted(SUPPORTED))}")
    levels = SUPPORTED[feature]
    if not levels.covers(level):
        raise InvalidConfig(
            f"{feature} must be between {levels.min_version} and {levels.max_version}, not {level}"
        )


def _check_kraft_version(features: Mapping[str, int], *, has_static_quorum: bool) -> None:
    fitting = 0 if has_static_quorum else 1
    if features.get(KRAFT_VERSION, fitting) != fitting:
        quorum = "set" if has_static_quorum else "not set"
        raise InvalidConfig(
            f"{KRAFT_VERSION} is {fitting}, because controller.quorum.voters is {quorum}; remove "
            f"--feature {KRAFT_VERSION}={features[KRAFT_VERSION]}"
        )
