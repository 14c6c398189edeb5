"""Leader election of partitions, and their changes when brokers register and leave.

A leader must hold every committed record, so it is elected from the ISR. If the ISR is empty, it is
one of the eligible leader replicas (KIP-966). Any other election is unclean: it may lose records
and must be allowed.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum

import msgspec

from headrace.controller.decision import ClusterDefaults
from headrace.metadata.features import (
    bumps_leader_epoch_on_isr_shrink,
    has_directories,
    partition_version,
)
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

RECOVERED, RECOVERING = 0, 1
NO_DIRECTORIES: Mapping[int, Uuid] = {}

Acceptable = Callable[[int], bool]


class Election(Enum):
    """The replicas that may win an election."""

    ONLINE = "the leader if possible, otherwise any in-sync replica"
    PREFERRED = "the first replica if it is in sync, otherwise as ONLINE"
    UNCLEAN = "as ONLINE; if none is left, a replica that may lack records"


class Outcome(msgspec.Struct, frozen=True):
    leader: int
    unclean: bool = False


class PartitionChange(msgspec.Struct, kw_only=True):
    """A change of a partition, which `record` turns into a metadata record."""

    topic_id: Uuid
    index: int
    partition: PartitionImage
    is_acceptable: Acceptable
    isr: tuple[int, ...]
    election: Election = Election.ONLINE
    uses_elr: bool = False
    min_isr: int = 1
    shut_down_uncleanly: frozenset[int] = frozenset()
    leader_recovery_state: int | None = None
    """The state that the leader reports; None keeps it."""
    directories: Mapping[int, Uuid] = NO_DIRECTORIES
    """New log directories, by replica."""
    elr: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    bumps_epoch_on_isr_shrink: bool = False
    has_directories: bool = False

    def __post_init__(self) -> None:
        self.replicas = self.partition.replicas
        self.removing, self.adding = self.partition.removing, self.partition.adding
        if self.removing or self.adding:
            self._complete_reassignment()
        self.elr = self._eligible()

    def record(self) -> PartitionChangeRecord | None:
        """Return the record, or None if nothing changes."""
        record = PartitionChangeRecord(partition_id=self.index, topic_id=self.topic_id)
        self._elect(record)
        if self.replicas != self.partition.replicas and record.leader == NO_LEADER_CHANGE:
            # Without a new term, the leader would go on serving the replica that was removed.
            record.leader = self.partition.leader
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
        self._note_assignment(record)
        if self.leader_recovery_state not in (None, self.partition.leader_recovery_state):
            record.leader_recovery_state = self.leader_recovery_state
        unchanged = PartitionChangeRecord(partition_id=self.index, topic_id=self.topic_id)
        return None if record == unchanged else record

    def outcome(self) -> Outcome:
        """Elect a leader."""
        replicas, leader = self.replicas, self.partition.leader
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
        """Return the previous leader if no replica is left that surely has all records."""
        known = self.partition.last_known_elr
        if not self.uses_elr or self.isr or self.elr or len(known) != 1:
            return None
        return known[0] if self.is_acceptable(known[0]) else None

    def _complete_reassignment(self) -> None:
        """End a reassignment, and drop its old replicas, once all others are in sync."""
        replicas = tuple(one for one in self.replicas if one not in self.removing)
        isr = tuple(one for one in self.isr if one not in self.removing)
        if replicas and set(replicas) <= set(isr):
            self.replicas, self.isr = replicas, isr
            self.removing = self.adding = ()

    def _eligible(self) -> tuple[int, ...]:
        """Return the eligible leaders: members that left a small ISR without a crash."""
        if not self.uses_elr:
            return self.partition.elr  # Used once more, by the next election.
        if len(self.isr) >= self.min_isr:
            return ()
        members = dict.fromkeys((*self.partition.elr, *self.partition.isr))
        return tuple(
            member
            for member in members
            if member in self.replicas
            and member not in self.isr
            and member not in self.shut_down_uncleanly
        )

    def _elect(self, record: PartitionChangeRecord) -> None:
        outcome = self.outcome()
        if outcome.leader == self.partition.leader:
            return
        record.leader = outcome.leader
        if not self.isr and outcome.leader in self.elr:
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
        """Store the last leader while the partition has none; clear it with the next leader."""
        if not self.uses_elr:
            return
        known, leader = self.partition.last_known_elr, self.partition.leader
        will_lead = record.leader if record.leader != NO_LEADER_CHANGE else leader
        if record.isr == [] and leader != NO_LEADER and known != (leader,):
            record.last_known_elr = [leader]
        elif will_lead != NO_LEADER and known:
            record.last_known_elr = []

    def _note_assignment(self, record: PartitionChangeRecord) -> None:
        """Note the end of a reassignment, and new log directories."""
        partition = self.partition
        if self.replicas != partition.replicas:
            record.replicas = list(self.replicas)
        if self.removing != partition.removing:
            record.removing_replicas = list(self.removing)
        if self.adding != partition.adding:
            record.adding_replicas = list(self.adding)
        if not self.has_directories or (
            not self.directories and self.replicas is partition.replicas
        ):
            return
        directories = tuple(
            self.directories.get(replica) or partition.directory_of(replica) or UNASSIGNED_DIRECTORY
            for replica in self.replicas
        )
        if directories != partition.directories:
            record.directories = list(directories)


class Leadership:
    """The leadership rules for an image, with the brokers that register and leave."""

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
        self._uses_elr = image.uses_elr
        self._bumps_epoch = bumps_leader_epoch_on_isr_shrink(image.metadata_version)
        self._has_directories = has_directories(image.metadata_version)
        # One operation may change all partitions of a topic, so its configs are read once.
        self._by_topic: dict[str, tuple[Election, int]] = {}

    def change(
        self,
        topic: TopicImage,
        index: int,
        *,
        isr: tuple[int, ...] | None = None,
        election: Election | None = None,
        leader_recovery_state: int | None = None,
        directories: Mapping[int, Uuid] = NO_DIRECTORIES,
    ) -> PartitionChange:
        """Return the change that the rules require; `isr` is the new ISR, if it changes."""
        partition = topic.partitions[index]
        topics_election, min_isr = self._rules_of(topic.name)
        return PartitionChange(
            topic_id=topic.id,
            index=index,
            partition=partition,
            is_acceptable=lambda replica: self._is_acceptable(partition, replica),
            isr=partition.isr if isr is None else isr,
            election=topics_election if election is None else election,
            uses_elr=self._uses_elr,
            min_isr=min(min_isr, len(partition.replicas)),
            shut_down_uncleanly=self.shut_down_uncleanly,
            leader_recovery_state=leader_recovery_state,
            directories=directories,
            bumps_epoch_on_isr_shrink=self._bumps_epoch,
            has_directories=self._has_directories,
        )

    def versioned(self, records: Iterable[PartitionChangeRecord | None]) -> list[VersionedRecord]:
        return [VersionedRecord(one, self.version) for one in records if one is not None]

    def _rules_of(self, topic: str) -> tuple[Election, int]:
        """Return the election of leaderless partitions of a topic, and its min.insync.replicas."""
        found = self._by_topic.get(topic)
        if found is None:
            unclean = self.defaults.allows_unclean_election(self.image, topic)
            min_isr = 1
            if self._uses_elr:
                min_isr = self.defaults.min_insync_replicas_of(self.image, topic)
            found = Election.UNCLEAN if unclean else Election.ONLINE, min_isr
            self._by_topic[topic] = found
        return found

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
    """Move the leadership of a broker's partitions, and take the broker out of every ISR.

    A partition with this replica only stays with the broker, fenced or not: its clients wait for
    that broker either way, and a restart does not write two records per partition. Kafka writes
    them when it starts on such a directory. After a crash the term must be a new one (`new_term`):
    the tail of the log may be lost, and other records may take its offsets.
    """
    uncleanly = frozenset({broker_id}) if unclean and image.uses_elr else frozenset[int]()
    rules = Leadership(image, defaults, leaving=broker_id, shut_down_uncleanly=uncleanly)
    records: list[PartitionChangeRecord | None] = []
    for topic, index, partition in image.partitions():
        if is_sole_replica(partition, broker_id):
            if new_term and partition.leader == broker_id:
                records.append(
                    PartitionChangeRecord(partition_id=index, topic_id=topic.id, leader=broker_id)
                )
        elif broker_id in partition.isr or (uncleanly and broker_id in partition.elr):
            rest = tuple(member for member in partition.isr if member != broker_id)
            records.append(rules.change(topic, index, isr=rest).record())
    return rules.versioned(records)


def is_sole_replica(partition: PartitionImage, broker_id: int) -> bool:
    """Return whether no other broker has a replica, now or after a reassignment."""
    return partition.replicas == (broker_id,)


def leads_for_others(image: MetadataImage, broker_id: int) -> bool:
    """Return whether a broker leads a partition that another broker could lead."""
    return any(
        partition.leader == broker_id and not is_sole_replica(partition, broker_id)
        for _, _, partition in image.partitions()
    )


def arrive(
    image: MetadataImage, broker: BrokerImage, defaults: ClusterDefaults
) -> list[VersionedRecord]:
    """Elect leaders for partitions without one after a broker becomes active."""
    rules = Leadership(image, defaults, arriving=broker)
    return rules.versioned(
        rules.change(topic, index).record()
        for topic, index, partition in image.partitions()
        if partition.leader == NO_LEADER
    )


def retire(
    image: MetadataImage, broker_id: int, defaults: ClusterDefaults
) -> list[VersionedRecord]:
    """Take a broker out of every ISR for good, even if partitions have no leader afterwards.

    It is no eligible leader either: without a registered epoch, a crash in the meantime would go
    unnoticed when the broker registers again.
    """
    gone = frozenset({broker_id}) if image.uses_elr else frozenset[int]()
    rules = Leadership(image, defaults, leaving=broker_id, shut_down_uncleanly=gone)
    return rules.versioned(
        rules.change(
            topic, index, isr=tuple(member for member in partition.isr if member != broker_id)
        ).record()
        for topic, index, partition in image.partitions()
        if broker_id in partition.isr or broker_id in partition.elr
    )


def _has_online_directory(broker: BrokerImage, partition: PartitionImage) -> bool:
    """Return whether the replica's log directory works, as far as the broker has reported."""
    directory = partition.directory_of(broker.id)
    if directory in (None, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    return directory != LOST_DIRECTORY and (
        not broker.directories or directory in broker.directories
    )
