"""What a decision is: the records that make it true, and the answer that may then be given.

Every controller operation is a function from the image and the request to a `Decision`. It
changes nothing; `Controller.submit` writes the records, replays them, and only then hands out
the reply, so no crash can take back what a client was told.
"""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from headrace.errors import PolicyViolation
from headrace.metadata.image import MetadataImage, ResourceType
from headrace.metadata.records import VersionedRecord

T = TypeVar("T")

RECORDS_PER_OPERATION_MAX = 10_000
"""One operation is one batch, and a batch must stay small enough for every follower to take."""


class Decision(NamedTuple, Generic[T]):
    """Records to write, all or none, and the reply once they are committed."""

    records: Sequence[VersionedRecord]
    reply: T


Decide = Callable[[MetadataImage], Decision[T]]


class ClusterDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of this node that stand in where neither request nor metadata says more."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False

    def min_insync_replicas_of(self, image: MetadataImage, topic: str) -> int:
        value = _dynamic(image, topic, "min.insync.replicas")
        return self.min_insync_replicas if value is None else int(value)

    def allows_unclean_election(self, image: MetadataImage, topic: str) -> bool:
        value = _dynamic(image, topic, "unclean.leader.election.enable")
        return self.unclean_leader_election_enable if value is None else value == "true"


def check_size(records: Sequence[VersionedRecord], what: str) -> None:
    """Refuse an operation that would not fit in one batch."""
    if len(records) > RECORDS_PER_OPERATION_MAX:
        raise PolicyViolation(
            f"{what} would take {len(records):,} metadata records, and one request may write "
            f"{RECORDS_PER_OPERATION_MAX:,}; split it into several requests"
        )


def _dynamic(image: MetadataImage, topic: str, name: str) -> str | None:
    """A config of the topic, or the one set for all brokers."""
    value = image.configs_of(ResourceType.TOPIC, topic).get(name)
    return image.configs_of(ResourceType.BROKER, "").get(name) if value is None else value
