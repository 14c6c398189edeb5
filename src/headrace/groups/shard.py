"""One partition of `__consumer_offsets` as state: its groups of all kinds, and their offsets.

Each kind of group has a module of its own with two doors: `REPLAYS`, which takes in its types of
records, and `on_timer`, for the timers whose names begin with its name (`classic.session`). A
module is imported when the first record or request needs it.
"""

from collections.abc import Callable, Collection, Iterator, Set
from importlib import import_module
from typing import TYPE_CHECKING

from headrace.coordination.effects import Effects, RecordFacts, Ticket, TimerKey
from headrace.errors import GroupIdNotFound
from headrace.groups.group import Group, GroupType, OnTimer, Replay
from headrace.groups.offset_records import (
    OFFSET_COMMIT,
    CommittedOffset,
    OffsetKey,
    decode_offset_key,
    decode_offset_value,
)
from headrace.groups.offsets import EXPIRY, Offsets, forget_topics
from headrace.protocol.coordinator_records import (
    CoordinatorRecord,
    RecordTypes,
    decode_key,
    decode_value,
    record_types,
)
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.uuids import Uuid
from headrace.runtime.metrics import CoordinatorMetrics

if TYPE_CHECKING:
    from headrace.metadata.image import MetadataImage
    from headrace.settings.broker import BrokerSettings

TYPES: RecordTypes = record_types(schemas)

_CLASSIC, _CONSUMER, _SHARE, _STREAMS = "classic", "consumer", "share", "streams"
_KIND_OF_TYPE = {
    2: _CLASSIC,
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), _CONSUMER),
    **dict.fromkeys((10, 11, 12, 13, 14, 15), _SHARE),
    **dict.fromkeys((17, 19, 20, 21, 22, 23), _STREAMS),
}
_NEW_EPOCH = {
    schemas.ConsumerGroupMetadataKey.API_KEY: _CONSUMER,
    schemas.ShareGroupMetadataKey.API_KEY: _SHARE,
    schemas.StreamsGroupMetadataKey.API_KEY: _STREAMS,
}
"""Records that say that a group shares out anew."""

_replays: dict[int, Replay] = {}
_on_timers: dict[str, OnTimer] = {}


class GroupShard:
    """The groups of one partition, and what they have committed."""

    def __init__(
        self,
        settings: "Callable[[], BrokerSettings]",
        image: "Callable[[], MetadataImage]",
        metrics: CoordinatorMetrics | None = None,
    ) -> None:
        self.settings = settings
        self.image = image
        self.metrics = metrics or CoordinatorMetrics()
        self._is_loaded = False
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()

    def find(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        return group

    # The doors of the shell (coordination.effects.ShardState).

    def replay(self, record: CoordinatorRecord, facts: RecordFacts) -> None:
        number = record.key[0] << 8 | record.key[1] if len(record.key) > 1 else -1
        if number == OFFSET_COMMIT:
            offset_key = decode_offset_key(record.key)
            if record.value is None:
                self.offsets.remove(offset_key, facts.producer_id)
            else:
                committed = decode_offset_value(record.value)
                self.take_in_commits(offset_key.group_id, ((offset_key, committed),), facts)
            return
        replay = _replays.get(number) or _replay_of(number)
        if replay is not None:
            key = decode_key(TYPES, record.key)
            assert key is not None
            value = None if record.value is None else decode_value(TYPES, key, record.value)
            replay(self, key, value)
            if self._is_loaded and value is not None and number in _NEW_EPOCH:
                rebalances, kind = self.metrics.rebalances, _NEW_EPOCH[number]
                rebalances[kind] = rebalances.get(kind, 0) + 1

    def take_in_commits(
        self,
        group_id: str,
        commits: "Collection[tuple[OffsetKey, CommittedOffset]]",
        facts: RecordFacts,
    ) -> None:
        """What a group has committed in one batch, the first at the offset in `facts`."""
        record_offset, producer_id = facts.offset, facts.producer_id
        put = self.offsets.put
        for key, committed in commits:
            committed.record_offset = record_offset
            put(key, committed, producer_id)
            record_offset += 1
        if group_id not in self.groups and commits:
            self._add_simple_group(group_id)
        if self._is_loaded:
            self.metrics.offset_commits += len(commits)

    def _add_simple_group(self, group_id: str) -> None:
        """Offsets of a client that manages its partitions itself have a group without members."""
        from headrace.groups.classic_group import ClassicGroup

        self.groups[group_id] = ClassicGroup(group_id)

    def end_transaction(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        self.offsets.end_transaction(producer_id, committed=committed)

    def on_loaded(self, now_ms: int) -> Effects[None]:
        self._is_loaded = True  # What happened before was counted when it happened.
        effects: Effects[None] = Effects()
        for group in list(self.groups.values()):
            effects.merge(group.on_loaded(now_ms))
        effects.timers[EXPIRY] = self.settings().offsets_retention_check_interval_ms
        return effects

    def on_topics_deleted(self, topics: set[str]) -> Iterator[Effects[None]]:
        """Offsets of a topic that is gone mean nothing to one that takes its name."""
        return forget_topics(self.offsets, topics)

    def on_topic_ids_deleted(self, topic_ids: Set[Uuid]) -> Iterator[Effects[None]]:
        """Share groups know topics by their ids."""
        if any(group.type is GroupType.SHARE for group in self.groups.values()):
            from headrace.groups.share import on_topics_deleted

            yield from on_topics_deleted(self, topic_ids)

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects[None]:
        if key == EXPIRY:
            from headrace.groups.expiry import expire

            return expire(self, now_ms)
        return _on_timer_of(key[0].partition(".")[0])(self, key, now_ms)

    def tickets(self) -> list[Ticket]:
        return [ticket for group in self.groups.values() for ticket in group.tickets()]


def _replay_of(number: int) -> Replay | None:
    """The function for a type of record; a type that nobody here knows is passed over."""
    kind = _KIND_OF_TYPE.get(number)
    if kind is None:
        return None
    _replays.update(import_module(f"headrace.groups.{kind}").REPLAYS)
    return _replays[number]


def _on_timer_of(kind: str) -> OnTimer:
    found = _on_timers.get(kind)
    if found is None:
        module_door: OnTimer = import_module(f"headrace.groups.{kind}").on_timer
        found = _on_timers[kind] = module_door
    return found
