"""A decision of the controller: its records, and the reply once they are committed.

Every operation is a function from the image and the request to a `Decision`. It changes nothing.
`Controller.submit` writes the records, replays them and only then returns the reply, so a crash
never revokes an acknowledged change.
"""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from headrace.errors import PolicyViolation
from headrace.metadata.delta import ImageDelta
from headrace.metadata.image import MetadataImage, ResourceType
from headrace.metadata.records import VersionedRecord
from headrace.settings.broker import BrokerSettings

T = TypeVar("T")

RECORDS_PER_OPERATION_MAX = 10_000
"""One operation is one batch, which every follower must be able to read."""


class Decision(NamedTuple, Generic[T]):
    """Records to write, all or none, and the reply once they are committed."""

    records: Sequence[VersionedRecord]
    reply: T


Decide = Callable[[MetadataImage], Decision[T]]


class ClusterDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of this node that apply if neither the request nor the metadata sets a value."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False

    @classmethod
    def of(cls, settings: BrokerSettings) -> "ClusterDefaults":
        return cls(
            num_partitions=settings.num_partitions,
            default_replication_factor=settings.default_replication_factor,
            min_insync_replicas=settings.min_insync_replicas,
            unclean_leader_election_enable=settings.unclean_leader_election_enable,
        )

    def min_insync_replicas_of(self, image: MetadataImage, topic: str) -> int:
        value = _dynamic(image, topic, "min.insync.replicas")
        return self.min_insync_replicas if value is None else int(value)

    def allows_unclean_election(self, image: MetadataImage, topic: str) -> bool:
        value = _dynamic(image, topic, "unclean.leader.election.enable")
        return self.unclean_leader_election_enable if value is None else value == "true"


def after(image: MetadataImage, records: Sequence[VersionedRecord]) -> MetadataImage:
    """Return the image with records that are not in the log yet, for a second step on top."""
    if not records:
        return image
    delta = ImageDelta(image)
    for record in records:
        delta.replay(record.message)
    return delta.image(image.offset, image.epoch, image.timestamp_ms)


def check_size(records: Sequence[VersionedRecord], what: str) -> None:
    """Reject an operation that would not fit in one batch."""
    if len(records) > RECORDS_PER_OPERATION_MAX:
        raise PolicyViolation(
            f"{what} would take {len(records):,} metadata records, and one request may write "
            f"{RECORDS_PER_OPERATION_MAX:,}; split it into several requests"
        )


def _dynamic(image: MetadataImage, topic: str, name: str) -> str | None:
    """Return a config of the topic, or the one set for all brokers."""
    value = image.configs_of(ResourceType.TOPIC, topic).get(name)
    return image.configs_of(ResourceType.BROKER, "").get(name) if value is None else value
