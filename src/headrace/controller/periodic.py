"""Decisions that no request asks for: the active controller makes them from time to time."""

from collections.abc import Iterable

from headrace.controller.decision import ClusterDefaults, Decision
from headrace.controller.leadership import Election, Leadership
from headrace.controller.registration import fence_broker
from headrace.controller.sessions import SessionsView
from headrace.metadata.image import NO_LEADER, MetadataImage, TopicImage
from headrace.metadata.records import VersionedRecord
from headrace.protocol.schemas.records.metadata import NoOpRecord, RemoveDelegationTokenRecord
from headrace.security.tokens import is_expired

ELECTIONS_MAX = 1000
"""Elections of one decision. If there are more, the next decision follows at once."""
REMOVALS_MAX = 1000
"""Removals of one decision, likewise."""


def fence_stale_broker(
    image: MetadataImage, sessions: SessionsView, defaults: ClusterDefaults, now_ms: int
) -> Decision[int | None]:
    """Fence the broker that was silent for longest, if its session has ended; replies its id.

    One broker at a time: the next one is decided on the leaders that this one leaves.
    """
    broker_id = sessions.stalest(image)
    if broker_id is None or sessions.is_live(broker_id, now_ms):
        return Decision((), None)
    return Decision(fence_broker(image, image.brokers[broker_id], defaults), broker_id)


def balance_leaders(image: MetadataImage, defaults: ClusterDefaults) -> Decision[bool]:
    """Return leadership to preferred replicas that are in sync; replies whether more are left."""
    imbalanced = (
        (topic, index)
        for topic, index, partition in image.partitions()
        if partition.leader != partition.preferred_leader
        and image.is_active(partition.preferred_leader)
    )
    return _elections(Leadership(image, defaults), imbalanced, Election.PREFERRED)


def retry_unclean_elections(image: MetadataImage, defaults: ClusterDefaults) -> Decision[bool]:
    """Elect leaders that may lack records, where that is allowed; replies whether more are left.

    The permission may be younger than the loss of the leader.
    """
    leaderless = (
        (topic, index)
        for topic, index, partition in image.partitions()
        if partition.leader == NO_LEADER and defaults.allows_unclean_election(image, topic.name)
    )
    return _elections(Leadership(image, defaults), leaderless, Election.UNCLEAN)


def remove_expired_tokens(image: MetadataImage, now_ms: int) -> Decision[int]:
    """Remove delegation tokens that have ended; replies how many. `now_ms` is the time of day."""
    ended = [one for one in image.delegation_tokens.values() if is_expired(one, now_ms)]
    removals = [RemoveDelegationTokenRecord(one.token_id) for one in ended[:REMOVALS_MAX]]
    return Decision([VersionedRecord(one) for one in removals], len(removals))


def no_op() -> Decision[None]:
    """Write a record without content, by which followers see the high watermark move."""
    return Decision([VersionedRecord(NoOpRecord())], None)


def _elections(
    rules: Leadership, partitions: Iterable[tuple[TopicImage, int]], election: Election
) -> Decision[bool]:
    records: list[VersionedRecord] = []
    for topic, index in partitions:
        records += rules.versioned([rules.change(topic, index, election=election).record()])
        if len(records) >= ELECTIONS_MAX:
            return Decision(records, True)
    return Decision(records, False)
