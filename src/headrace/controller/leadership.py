"""Who leads a partition, and how its state changes when brokers come and go.

A leader must hold every committed record, so it comes from the ISR, or, where eligible leader
replicas (KIP-966) are in use and the ISR is empty, from those. Everything else is an unclean
election, which may lose records and happens only where it was allowed.
"""

from collections.abc import Callable, Iterable
from enum import Enum

import msgspec

from headrace.controller.decision import ClusterDefaults
from headrace.metadata.features import bumps_leader_epoch_on_isr_shrink, partition_version
from headrace.metadata.image import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    NO_LEADER,
    UNASSIGNED_DIRECTORY,
    BrokerImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from headrace.metadata.records import VersionedRecord
from headrace.metadata.topics_delta import NO_LEADER_CHANGE
from headrace.protocol.schemas.records.metadata import PartitionChangeRecord
from headrace.protocol.uuids import Uuid

RECOVERING = 1

Acceptable = Callable[[int], bool]


class Election(Enum):
    """How far an election may go."""

    ONLINE = "keep the leader if possible, else any in-sync replica"
    PREFERRED = "the first replica if it is in sync, else as ONLINE"
    UNCLEAN = "as ONLINE, but rather lose records than have no leader"


class Outcome(msgspec.Struct, frozen=True):
    leader: int
    unclean: bool = False


class PartitionChange(msgspec.Struct, kw_only=True):
    """A partition on its way to another state; `record` says what has to be written for it."""

    topic_id: Uuid
    index: int
    partition: PartitionImage
    is_acceptable: Acceptable
    isr: tuple[int, ...]
    election: Election = Election.ONLINE
    uses_elr: bool = False
    min_isr: int = 1
    shut_down_uncleanly: frozenset[int] = frozenset()
    elr: tuple[int, ...] = ()
    bumps_epoch_on_isr_shrink: bool = False

    def __post_init__(self) -> None:
        self.elr = self._eligible()

    def record(self) -> PartitionChangeRecord | None:
        """The record, or None if nothing changes."""
        record = PartitionChangeRecord(partition_id=self.index, topic_id=self.topic_id)
        self._elect(record)
        self._note_elr(record)
        if record.isr is None and (self.isr or self.uses_elr) and self.isr != self.partition.isr:
            # Without eligible leaders the last member stays: it is the only one known to hold
            # all committed records.
            record.isr = list(self.isr)
            if (
                self.bumps_epoch_on_isr_shrink
                and record.leader == NO_LEADER_CHANGE
                and not set(self.partition.isr) <= set(self.isr)
            ):
                record.leader = self.partition.leader
        self._note_last_known_leader(record)
        unchanged = PartitionChangeRecord(partition_id=self.index, topic_id=self.topic_id)
        return None if record == unchanged else record

    def outcome(self) -> Outcome:
        """The election itself."""
        replicas, leader = self.partition.replicas, self.partition.leader
        if self.election is Election.PREFERRED and self._is_valid(replicas[0]):
            return Outcome(replicas[0])
        if self._is_valid(leader):
            return Outcome(leader)
        for replica in replicas:
            if self._is_valid(replica):
                return Outcome(replica)
        last_known = self._last_known_leader()
        if last_known is not None:
            return Outcome(last_known, unclean=True)
        if self.election is Election.UNCLEAN:
            for replica in replicas:
                if self.is_acceptable(replica):
                    return Outcome(replica, unclean=True)
        return Outcome(NO_LEADER)

    def _is_valid(self, replica: int) -> bool:
        in_sync = replica in self.isr if self.isr else replica in self.elr
        return in_sync and self.is_acceptable(replica)

    def _last_known_leader(self) -> int | None:
        """The leader of old, when nobody is left who surely has all records."""
        known = self.partition.last_known_elr
        if not self.uses_elr or self.isr or self.elr or len(known) != 1:
            return None
        return known[0] if self.is_acceptable(known[0]) else None

    def _eligible(self) -> tuple[int, ...]:
        """The eligible leaders: who has left an ISR that is too small now, and left it whole."""
        if not self.uses_elr or len(self.isr) >= self.min_isr:
            return ()
        members = dict.fromkeys((*self.partition.elr, *self.partition.isr))
        return tuple(
            member
            for member in members
            if member not in self.isr and member not in self.shut_down_uncleanly
        )

    def _elect(self, record: PartitionChangeRecord) -> None:
        outcome = self.outcome()
        if outcome.leader == self.partition.leader:
            return
        record.leader = outcome.leader
        if outcome.leader in self.elr:
            self.isr = (outcome.leader,)
            self.elr = tuple(member for member in self.elr if member != outcome.leader)
        if outcome.unclean:
            record.isr = [outcome.leader]
            if self.partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _note_elr(self, record: PartitionChangeRecord) -> None:
        is_unclean = record.isr is not None
        elr = () if is_unclean or not self.uses_elr else self.elr
        if elr != self.partition.elr:
            record.eligible_leader_replicas = list(elr)

    def _note_last_known_leader(self, record: PartitionChangeRecord) -> None:
        """Remember who led last when nobody does, and forget it when somebody does again."""
        if not self.uses_elr:
            return
        known, leader = self.partition.last_known_elr, self.partition.leader
        will_lead = record.leader if record.leader != NO_LEADER_CHANGE else leader
        if record.isr == [] and known != (leader,):
            record.last_known_elr = [leader]
        elif will_lead != NO_LEADER and known:
            record.last_known_elr = []


class Leadership:
    """The leadership rules, bound to an image and to the brokers that are coming or going."""

    def __init__(
        self,
        image: MetadataImage,
        defaults: ClusterDefaults,
        *,
        leaving: int | None = None,
        arriving: BrokerImage | None = None,
        shut_down_uncleanly: frozenset[int] = frozenset(),
    ) -> None:
        self.image = image
        self.defaults = defaults
        self.leaving = leaving
        self.arriving = arriving
        self.shut_down_uncleanly = shut_down_uncleanly
        self.version = partition_version(image.metadata_version)

    def change(
        self,
        topic: TopicImage,
        index: int,
        *,
        isr: tuple[int, ...] | None = None,
        election: Election | None = None,
    ) -> PartitionChange:
        """The change that the rules ask for, towards another ISR if one is given."""
        partition = topic.partitions[index]
        if election is None:
            unclean = self.defaults.allows_unclean_election(self.image, topic.name)
            election = Election.UNCLEAN if unclean else Election.ONLINE
        min_isr = 1
        if self.image.uses_elr:
            wanted = self.defaults.min_insync_replicas_of(self.image, topic.name)
            min_isr = min(wanted, len(partition.replicas))
        return PartitionChange(
            topic_id=topic.id,
            index=index,
            partition=partition,
            is_acceptable=lambda replica: self._is_acceptable(partition, replica),
            isr=partition.isr if isr is None else isr,
            election=election,
            uses_elr=self.image.uses_elr,
            min_isr=min_isr,
            shut_down_uncleanly=self.shut_down_uncleanly,
            bumps_epoch_on_isr_shrink=bumps_leader_epoch_on_isr_shrink(self.image.metadata_version),
        )

    def versioned(self, records: Iterable[PartitionChangeRecord | None]) -> list[VersionedRecord]:
        return [VersionedRecord(one, self.version) for one in records if one is not None]

    def _is_acceptable(self, partition: PartitionImage, replica: int) -> bool:
        if replica == self.leaving or replica in self.shut_down_uncleanly:
            return False
        arriving = self.arriving
        if arriving is not None and replica == arriving.id:
            return _has_online_directory(arriving, partition)
        broker = self.image.brokers.get(replica)
        return broker is not None and broker.is_active and _has_online_directory(broker, partition)


def leave(
    image: MetadataImage,
    broker_id: int,
    defaults: ClusterDefaults,
    *,
    unclean: bool = False,
    new_term: bool = False,
) -> list[VersionedRecord]:
    """Hand over what a broker leads, and take it out of every ISR.

    A partition that nobody else can lead stays with the broker, fenced or not: its clients wait
    for that broker either way, and a node that restarts does not write two records for each of
    its partitions. Kafka, when it starts on such a directory, writes them itself. After a crash
    the term must be a new one all the same (`new_term`), since the tail of the log may be lost
    and other records take those offsets.
    """
    uncleanly = frozenset({broker_id}) if unclean and image.uses_elr else frozenset[int]()
    rules = Leadership(image, defaults, leaving=broker_id, shut_down_uncleanly=uncleanly)
    records: list[PartitionChangeRecord | None] = []
    for topic, index, partition in image.partitions():
        if broker_id not in partition.isr and broker_id not in partition.elr:
            continue
        rest = tuple(member for member in partition.isr if member != broker_id)
        is_alone = len(partition.replicas) == 1
        change = None if is_alone else rules.change(topic, index, isr=rest)
        if change is not None and (rest or change.outcome().leader != NO_LEADER):
            records.append(change.record())
        elif new_term and partition.leader == broker_id:
            records.append(
                PartitionChangeRecord(partition_id=index, topic_id=topic.id, leader=broker_id)
            )
    return rules.versioned(records)


def arrive(
    image: MetadataImage, broker: BrokerImage, defaults: ClusterDefaults
) -> list[VersionedRecord]:
    """Find leaders for partitions without one, now that a broker is here again."""
    rules = Leadership(image, defaults, arriving=broker)
    return rules.versioned(
        rules.change(topic, index).record()
        for topic, index, partition in image.partitions()
        if partition.leader == NO_LEADER
    )


def retire(
    image: MetadataImage, broker_id: int, defaults: ClusterDefaults
) -> list[VersionedRecord]:
    """Take a broker out of every ISR and elect anew, leaderless or not: it will not come back."""
    rules = Leadership(image, defaults, leaving=broker_id)
    return rules.versioned(
        rules.change(
            topic, index, isr=tuple(member for member in partition.isr if member != broker_id)
        ).record()
        for topic, index, partition in image.partitions()
        if broker_id in partition.isr or broker_id in partition.elr
    )


def _has_online_directory(broker: BrokerImage, partition: PartitionImage) -> bool:
    """Whether the replica's log directory works, as far as the broker has told."""
    directory = partition.directory_of(broker.id)
    if directory in (None, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    return directory != LOST_DIRECTORY and (
        not broker.directories or directory in broker.directories
    )
