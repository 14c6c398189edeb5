"""Replay of the records of topics and partitions, which are most records of a metadata log.

Partitions are edited by index and joined once, so that the cost is linear in the number of records.
Thousands of partitions share the few distinct replica lists.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace.metadata.image import MIGRATING_DIRECTORY, MetadataImage, PartitionImage, TopicImage
from headrace.metadata.records import UnreplayableRecord
from headrace.protocol.schemas.records.metadata import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from headrace.protocol.uuids import Uuid, to_text

NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1


class TopicEdit:
    """A topic being changed, its partitions by index."""

    __slots__ = ("id", "name", "partitions")

    def __init__(self, name: str, topic_id: Uuid, partitions: Iterable[PartitionImage]) -> None:
        self.name = name
        self.id = topic_id
        self.partitions = dict(enumerate(partitions))

    def image(self) -> TopicImage:
        count = len(self.partitions)
        try:
            partitions = tuple([self.partitions[index] for index in range(count)])
        except KeyError as missing:
            raise UnreplayableRecord(
                f"topic {self.name} has {count} partitions, but none numbered {missing}"
            ) from None
        return TopicImage(self.name, self.id, partitions)


class TopicsDelta:
    """The changes of topics and partitions since an image."""

    __slots__ = ("_by_id", "_by_name", "_deleted", "_edits", "_tuples")

    def __init__(self, base: MetadataImage) -> None:
        self._by_name = base.topics
        self._by_id = base.topics_by_id
        self._edits: dict[Uuid, TopicEdit] = {}
        self._deleted: dict[Uuid, TopicImage] = {}
        # Most partitions have the same few replica lists; each list is kept once.
        self._tuples: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    @property
    def created(self) -> list[Uuid]:
        """The ids of topics that the base did not have."""
        return [one for one in self._edits if one not in self._by_id]

    @property
    def changed(self) -> list[Uuid]:
        """The ids of topics that have other, or more, partitions than in the base."""
        return [one for one in self._edits if one in self._by_id]

    @property
    def deleted(self) -> list[TopicImage]:
        """The topics of the base that are gone, as they were."""
        return list(self._deleted.values())

    def result(self) -> tuple[Mapping[str, TopicImage], Mapping[Uuid, TopicImage]]:
        """All topics by name and by id."""
        if not self._edits and not self._deleted:
            return self._by_name, self._by_id
        topics, topics_by_id = dict(self._by_name), dict(self._by_id)
        for deleted in self._deleted.values():
            del topics[deleted.name], topics_by_id[deleted.id]
        for edit in self._edits.values():
            topic = edit.image()
            if topics.get(topic.name, topic).id != topic.id:
                raise UnreplayableRecord(f"two topics of one name: {topic.name}")
            topics[topic.name] = topics_by_id[topic.id] = topic
        return topics, topics_by_id

    def remove_all(self) -> None:
        """Remove every topic of the base; `add` brings back those that a snapshot has."""
        self._deleted = dict(self._by_id)

    def add(self, record: TopicRecord) -> None:
        is_back = self._deleted.pop(record.topic_id, None) is not None
        if record.topic_id in self._edits or (record.topic_id in self._by_id and not is_back):
            raise UnreplayableRecord(f"topic {record.name} is created twice under one id")
        self._edits[record.topic_id] = TopicEdit(record.name, record.topic_id, ())

    def remove(self, record: RemoveTopicRecord) -> str:
        """Remove a topic, and return its name, so that its configs are removed too."""
        topic_id = record.topic_id
        topic = self._by_id.get(topic_id)
        edit = self._edits.pop(topic_id, None)
        if edit is None and (topic is None or topic_id in self._deleted):
            raise UnreplayableRecord(f"topic id {to_text(topic_id)} is removed, but unknown")
        if topic is not None:
            self._deleted[topic_id] = topic
            return topic.name
        assert edit is not None, "created after the base"
        return edit.name

    def put_partition(self, record: PartitionRecord) -> None:
        edit = self._edits.get(record.topic_id) or self._edit(record.topic_id)
        share = self._share
        edit.partitions[record.partition_id] = PartitionImage(
            share(record.replicas),
            share(record.isr),
            record.leader,
            record.leader_epoch,
            record.partition_epoch,
            share(record.directories or (MIGRATING_DIRECTORY,) * len(record.replicas)),
            share(record.removing_replicas),
            share(record.adding_replicas),
            record.leader_recovery_state,
            share(record.eligible_leader_replicas or ()),
            share(record.last_known_elr or ()),
        )

    def change_partition(self, record: PartitionChangeRecord) -> None:
        edit = self._edits.get(record.topic_id) or self._edit(record.topic_id)
        old = edit.partitions.get(record.partition_id)
        if old is None:
            raise UnreplayableRecord(
                f"partition {edit.name}-{record.partition_id} changes, but was never created"
            )
        edit.partitions[record.partition_id] = changed_partition(old, record, self._share)

    def clear_elr(self, record: ClearElrRecord) -> None:
        """Clear the eligible leaders of one topic, or of all topics if the name is empty."""
        for topic_id in self._topic_ids(record.topic_name):
            edit = self._edit(topic_id)
            for index, partition in edit.partitions.items():
                if partition.elr or partition.last_known_elr:
                    edit.partitions[index] = changed_partition(
                        partition,
                        PartitionChangeRecord(eligible_leader_replicas=[], last_known_elr=[]),
                    )

    def _topic_ids(self, name: str) -> list[Uuid]:
        names = {one: topic.name for one, topic in self._by_id.items()}
        names |= {one: edit.name for one, edit in self._edits.items()}
        found = [
            one
            for one, its_name in names.items()
            if name in ("", its_name) and one not in self._deleted
        ]
        if name and not found:
            raise UnreplayableRecord(f"the eligible leaders of unknown topic {name} are cleared")
        return found

    def _edit(self, topic_id: Uuid) -> TopicEdit:
        edit = self._edits.get(topic_id)
        if edit is None:
            topic = self._by_id.get(topic_id)
            if topic is None or topic_id in self._deleted:
                raise UnreplayableRecord(f"a record is about unknown topic id {to_text(topic_id)}")
            edit = TopicEdit(topic.name, topic.id, topic.partitions)
            self._edits[topic_id] = edit
        return edit

    def _share(self, items: Iterable[Any]) -> tuple[Any, ...]:
        found = tuple(items)
        return self._tuples.setdefault(found, found)


def changed_partition(
    old: PartitionImage,
    record: PartitionChangeRecord,
    share: Callable[[Iterable[Any]], tuple[Any, ...]] = tuple,
) -> PartitionImage:
    """Return a partition after a record; `share` returns one tuple for equal lists."""
    replicas, isr, directories = record.replicas, record.isr, record.directories
    removing, adding = record.removing_replicas, record.adding_replicas
    elr, last_known_elr = record.eligible_leader_replicas, record.last_known_elr
    recovery, leader = record.leader_recovery_state, record.leader
    has_leader = leader != NO_LEADER_CHANGE
    return PartitionImage(
        old.replicas if replicas is None else share(replicas),
        old.isr if isr is None else share(isr),
        leader if has_leader else old.leader,
        # Naming a leader, even the same one, starts a new term.
        old.leader_epoch + has_leader,
        old.partition_epoch + 1,
        old.directories if directories is None else share(directories),
        old.removing if removing is None else share(removing),
        old.adding if adding is None else share(adding),
        old.leader_recovery_state if recovery == NO_RECOVERY_CHANGE else recovery,
        old.elr if elr is None else share(elr),
        old.last_known_elr if last_known_elr is None else share(last_known_elr),
    )
