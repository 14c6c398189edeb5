"""The feature share.version: whether the cluster has agreed to have share groups."""

from typing import TYPE_CHECKING

from headrace.errors import UnsupportedVersion
from headrace.metadata.features import SHARE_VERSION

if TYPE_CHECKING:
    from headrace.broker.node import Broker


def check_enabled(broker: "Broker") -> None:
    """Raise unless there may be share groups; directories of old clusters may not have them yet."""
    if not broker.image.features.get(SHARE_VERSION, 0):
        raise UnsupportedVersion(
            "share groups are switched off in this cluster: raise the feature share.version to 1"
        )
