"""The partition states of a share group, and the steps that create and delete them.

A state is created in three steps: the group records that it is being initialized, the share
coordinator writes it, the group records that it is initialized. After a crash in between, the next
heartbeat repeats the steps. Deletion works the same way. This module has decisions and records
only; the shell calls the share coordinator.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from headrace.coordination.effects import Effects
from headrace.groups.share import records
from headrace.groups.share.group import ShareGroup, ShareMemory
from headrace.groups.share.records import StateTopic, StateTopics
from headrace.metadata.image import MetadataImage
from headrace.protocol.uuids import Uuid

if TYPE_CHECKING:
    from headrace.groups.state import GroupsState

Partitions = Mapping[Uuid, frozenset[int]]


class Forgetting(msgspec.Struct, frozen=True):
    """The states to delete, and the topics of a request that have none."""

    partitions: Partitions = {}
    unknown: Mapping[str, str] = {}


class Alteration(msgspec.Struct, frozen=True):
    """The states to reset, and their new state epoch."""

    state_epoch: int
    offsets: Mapping[Uuid, Mapping[int, int]] = {}


def missing_states(
    group: ShareGroup, topic_names: Iterable[str], image: MetadataImage, now_ms: int
) -> Partitions:
    """The partitions without a state and without an initialization in progress."""
    retry_ms = group.settings().initialize_retry_interval_ms
    missing = {}
    for name in topic_names:
        topic = image.topics.get(name)
        if topic is None:
            continue
        begun = _partitions(group.states.initialized, topic.id)
        since_ms = group.memory.initializing_since_ms.get(topic.id)
        if since_ms is not None and now_ms - since_ms < retry_ms:
            begun |= _partitions(group.states.initializing, topic.id)
        if lacking := frozenset(range(len(topic.partitions))) - begun:
            missing[topic.id] = lacking
    return missing


def with_initializing(
    states: StateTopics, partitions: Partitions, image: MetadataImage
) -> StateTopics:
    """The states while some are being begun; a topic that was to be forgotten is not any more."""
    return StateTopics(
        initializing=_joined(states.initializing, partitions, image),
        initialized=states.initialized,
        deleting={one: name for one, name in states.deleting.items() if one not in partitions},
    )


def initialized(shard: "GroupsState", group_id: str, partitions: Partitions) -> Effects[None]:
    """The share coordinator has begun these states."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ShareGroup) or not partitions:
        return Effects()
    states = StateTopics(
        initializing=_without(group.states.initializing, partitions),
        initialized=_joined(group.states.initialized, partitions, shard.image()),
        deleting=group.states.deleting,
    )
    return Effects(records=[records.state_topics(group_id, states)])


def not_initialized(
    shard: "GroupsState", group_id: str, topic_ids: Collection[Uuid]
) -> Effects[None]:
    """Record that these states could not be initialized; the next heartbeat retries."""

    if not topic_ids:
        return Effects()

    def forget() -> None:
        group = shard.groups.get(group_id)
        if isinstance(group, ShareGroup):
            since_ms = group.memory.initializing_since_ms
            left = {one: found for one, found in since_ms.items() if one not in topic_ids}
            shard.set_memory(group_id, ShareMemory(None, left))

    return Effects(on_written=forget)


def initializing_since(memory: ShareMemory, topic_ids: Iterable[Uuid], now_ms: int) -> ShareMemory:
    """Note the start of an initialization, so that no other heartbeat begins it as well."""
    since_ms = {**memory.initializing_since_ms, **dict.fromkeys(topic_ids, now_ms)}
    return ShareMemory(None, since_ms)


def alter(
    shard: "GroupsState",
    group: ShareGroup,
    offsets: Mapping[Uuid, Mapping[int, int]],
    now_ms: int,
) -> Effects[Alteration]:
    """Let an empty group start over at these offsets.

    Kafka keeps the group epoch. Headrace raises it, because it becomes the states' epoch, which
    fences partition leaders with an older state.
    """
    group.check_delete()
    if not offsets:
        return Effects(Alteration(group.epoch))
    epoch = group.epoch + 1
    partitions = {one: frozenset(found) for one, found in offsets.items()}
    states = with_initializing(group.states, partitions, shard.image())
    memory = initializing_since(group.memory, partitions, now_ms)
    return Effects(
        Alteration(epoch, offsets),
        [
            group.records.group(group.group_id, epoch, group.metadata_hash),
            records.state_topics(group.group_id, states),
        ],
        on_written=lambda: shard.set_memory(group.group_id, memory),
    )


def forget_topics(
    group: ShareGroup, topic_names: Iterable[str], image: MetadataImage
) -> Effects[Forgetting]:
    """Begin to forget the states of an empty group's topics."""
    group.check_delete()
    states, deleting = group.states, dict(group.states.deleting)
    found: dict[Uuid, frozenset[int]] = {}
    unknown: dict[str, str] = {}
    for name in dict.fromkeys(topic_names):
        topic = image.topics.get(name)
        if topic is None:
            unknown[name] = "This server does not host this topic-partition."
        elif topic.id in states.initialized:
            found[topic.id] = states.initialized[topic.id].partitions
            deleting[topic.id] = name
        elif topic.id in deleting:  # Left by a failed attempt.
            found[topic.id] = frozenset(range(len(topic.partitions)))
        else:
            unknown[name] = "There is no offset information to delete."
    after = StateTopics(states.initializing, _except(states.initialized, found), deleting)
    changed = [records.state_topics(group.group_id, after)] if found else []
    return Effects(Forgetting(found, unknown), changed)


def forget_all(group: ShareGroup, image: MetadataImage) -> Effects[Forgetting]:
    """Begin to forget all states of a group that is to be deleted."""
    group.check_delete()
    states = group.states
    found = {
        one: _partitions(states.initialized, one) | _partitions(states.initializing, one)
        for one in (*states.initialized, *states.initializing)
    }
    for topic_id in states.deleting:
        topic = image.topics_by_id.get(topic_id)
        if topic is not None:
            found[topic_id] = frozenset(range(len(topic.partitions)))
    if not found:
        return Effects(Forgetting())
    after = StateTopics(deleting={one: _name_of(one, states, image) for one in found})
    return Effects(Forgetting(found), [records.state_topics(group.group_id, after)])


def forgotten(shard: "GroupsState", group_id: str, topic_ids: Collection[Uuid]) -> Effects[None]:
    """The share coordinator has forgotten the states of these topics."""
    group = shard.groups.get(group_id)
    if not isinstance(group, ShareGroup) or not topic_ids:
        return Effects()
    states = group.states
    left = {one: name for one, name in states.deleting.items() if one not in topic_ids}
    after = StateTopics(states.initializing, states.initialized, left)
    return Effects(records=[records.state_topics(group_id, after)])


def without_topics(group: ShareGroup, topic_ids: Collection[Uuid]) -> Effects[None]:
    """Remove deleted topics; the share coordinator deletes their states on its own."""
    states = group.states
    known = states.initializing.keys() | states.initialized.keys() | states.deleting.keys()
    if known.isdisjoint(topic_ids):
        return Effects()
    after = StateTopics(
        _except(states.initializing, topic_ids),
        _except(states.initialized, topic_ids),
        {one: name for one, name in states.deleting.items() if one not in topic_ids},
    )
    return Effects(records=[records.state_topics(group.group_id, after)])


def _partitions(topics: Mapping[Uuid, StateTopic], topic_id: Uuid) -> frozenset[int]:
    found = topics.get(topic_id)
    return frozenset() if found is None else found.partitions


def _joined(
    topics: Mapping[Uuid, StateTopic], added: Partitions, image: MetadataImage
) -> dict[Uuid, StateTopic]:
    joined = dict(topics)
    for topic_id, partitions in added.items():
        topic = image.topics_by_id.get(topic_id)
        if topic is not None:
            known = _partitions(topics, topic_id)
            joined[topic_id] = StateTopic(topic.name, known | partitions)
    return joined


def _without(topics: Mapping[Uuid, StateTopic], removed: Partitions) -> dict[Uuid, StateTopic]:
    left = {}
    for topic_id, topic in topics.items():
        partitions = topic.partitions - removed.get(topic_id, frozenset())
        if partitions:
            left[topic_id] = StateTopic(topic.name, partitions)
    return left


def _except(
    topics: Mapping[Uuid, StateTopic], topic_ids: Collection[Uuid]
) -> dict[Uuid, StateTopic]:
    return {one: topic for one, topic in topics.items() if one not in topic_ids}


def _name_of(topic_id: Uuid, states: StateTopics, image: MetadataImage) -> str:
    topic = image.topics_by_id.get(topic_id)
    if topic is not None:
        return topic.name
    for topics in (states.initialized, states.initializing):
        if topic_id in topics:
            return topics[topic_id].name
    return states.deleting[topic_id]
