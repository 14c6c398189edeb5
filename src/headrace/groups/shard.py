"""One partition of `__consumer_offsets` as state: its groups of all kinds, and their offsets.

Each kind of group has a package whose module `protocol` replays its types of records and decides
on the timers whose names begin with its name (`classic.session`). The module is imported when the
first record or request needs it.
"""

from collections.abc import Callable, Iterator, Set
from importlib import import_module
from typing import cast

from headrace.coordination.effects import Effects, RecordFacts, Ticket, TimerKey
from headrace.coordination.metrics import CoordinatorMetrics
from headrace.groups.group import GroupType
from headrace.groups.offset_records import OFFSET_COMMIT, decode_offset_key, decode_offset_value
from headrace.groups.offsets import EXPIRY, apply_commits, forget_topics
from headrace.groups.state import GroupProtocol, GroupsState
from headrace.metadata.image import MetadataImage
from headrace.protocol.coordinator_records import (
    CoordinatorRecord,
    RecordTypes,
    decode_key,
    decode_value,
    record_types,
)
from headrace.protocol.schemas.records import groups as schemas
from headrace.protocol.uuids import Uuid
from headrace.settings.broker import BrokerSettings

TYPES: RecordTypes = record_types(schemas)

KIND_OF_TYPE = {
    2: GroupType.CLASSIC,
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), GroupType.CONSUMER),
    **dict.fromkeys((10, 11, 12, 13, 14, 15), GroupType.SHARE),
    **dict.fromkeys((17, 19, 20, 21, 22, 23), GroupType.STREAMS),
}
"""The record types of each kind of group; offsets have types 0 and 1."""

_GROUP_EPOCHS = frozenset(
    {
        schemas.ConsumerGroupMetadataKey.API_KEY,
        schemas.ShareGroupMetadataKey.API_KEY,
        schemas.StreamsGroupMetadataKey.API_KEY,
    }
)
"""The types of records with a new group epoch, which begins a rebalance."""


class GroupShard(GroupsState):
    """The state of one partition with its replay and its timers."""

    def __init__(
        self,
        settings: Callable[[], BrokerSettings],
        image: Callable[[], MetadataImage],
        metrics: CoordinatorMetrics | None = None,
    ) -> None:
        super().__init__(settings, image, metrics)
        self._protocols: dict[str, GroupProtocol] = {}

    # The methods for the shell (coordination.effects.ShardState).

    def replay(self, record: CoordinatorRecord, facts: RecordFacts) -> None:
        number = record.key[0] << 8 | record.key[1] if len(record.key) > 1 else -1
        if number == OFFSET_COMMIT:
            offset_key = decode_offset_key(record.key)
            if record.value is None:
                self.offsets.remove(offset_key, facts.producer_id)
            else:
                committed = decode_offset_value(record.value)
                apply_commits(self, offset_key.group_id, ((offset_key, committed),), facts)
            return
        kind = KIND_OF_TYPE.get(number)
        if kind is None:
            return  # A later version's record, which nothing here depends on.
        key = decode_key(TYPES, record.key)
        assert key is not None
        value = None if record.value is None else decode_value(TYPES, key, record.value)
        self._protocol_of(kind).replay(self, key, value)
        if self.is_loaded and value is not None and number in _GROUP_EPOCHS:
            rebalances = self.metrics.rebalances
            rebalances[kind] = rebalances.get(kind, 0) + 1

    def _protocol_of(self, kind: str) -> GroupProtocol:
        """The module of a kind of group, imported when it is first needed."""
        found = self._protocols.get(kind)
        if found is None:
            found = self._protocols[kind] = cast(
                GroupProtocol, import_module(f"headrace.groups.{kind}.protocol")
            )
        return found

    def end_transaction(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        self.offsets.end_transaction(producer_id, committed=committed)

    def on_loaded(self, now_ms: int) -> Effects[None]:
        self.is_loaded = True  # Earlier events were counted when they happened.
        effects: Effects[None] = Effects()
        for group in list(self.groups.values()):
            effects.merge(group.on_loaded(now_ms))
        effects.timers[EXPIRY] = self.settings().offsets_retention_check_interval_ms
        return effects

    def on_topics_deleted(self, topics: set[str]) -> Iterator[Effects[None]]:
        """Delete the offsets of deleted topics: a new topic may get the name."""
        return forget_topics(self.offsets, topics)

    def on_topic_ids_deleted(self, topic_ids: Set[Uuid]) -> Iterator[Effects[None]]:
        """Delete topics from share groups, which identify topics by id."""
        if any(group.type is GroupType.SHARE for group in self.groups.values()):
            from headrace.groups.share.protocol import on_topics_deleted

            yield from on_topics_deleted(self, topic_ids)

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects[None]:
        if key == EXPIRY:
            from headrace.groups.expiry import expire

            return expire(self, now_ms)
        return self._protocol_of(key[0].partition(".")[0]).on_timer(self, key, now_ms)

    def tickets(self) -> list[Ticket]:
        return [ticket for group in self.groups.values() for ticket in group.tickets()]
