"""A shard of groups without a broker: effects are carried out on a simulated clock, in memory."""

from typing import Any

from headrace.coordination.effects import Effects, RecordFacts, TimerKey
from headrace.coordination.timers import TimerQueue
from headrace.errors import KafkaError
from headrace.groups.shard import GroupShard
from headrace.metadata.image import MetadataImage
from headrace.protocol.coordinator_records import CoordinatorRecord
from headrace.settings.broker import BrokerSettings


class GroupShell:
    """The broker's shell of a shard (`broker/coordinators.py`), with a list for a log."""

    def __init__(self, image: MetadataImage, settings: BrokerSettings, now_ms: int) -> None:
        self.image = image
        self.settings = settings
        self.now_ms = now_ms
        self.log: list[tuple[CoordinatorRecord, RecordFacts]] = []
        self.refusal: KafkaError | None = None
        """Set to have every write refused."""
        self.timers: TimerQueue[TimerKey] = TimerQueue()
        self.state = self.new_state()

    def new_state(self) -> GroupShard:
        return GroupShard(lambda: self.settings, lambda: self.image)

    def apply(self, effects: Effects[Any]) -> Any:
        if effects.records and self.refusal is not None:
            if effects.on_refused is not None:
                self.apply(effects.on_refused(self.refusal))
            raise self.refusal
        producer_id, epoch = effects.producer or (-1, -1)
        for record in effects.records:
            facts = RecordFacts(len(self.log), self.now_ms, producer_id, epoch)
            self.log.append((record, facts))
            self.state.replay(record, facts)
        if effects.on_written is not None:
            effects.on_written()
        for key, delay_ms in effects.timers.items():
            if delay_ms is None:
                self.timers.cancel(key)
            else:
                self.timers.set(key, self.now_ms + delay_ms)
        for ticket, answer in effects.answers:
            self.give(ticket, answer)
        return effects.reply

    def give(self, ticket: Any, answer: Any) -> None:
        """Answer a request that waited."""

    def reload(self) -> None:
        """Restart from the log alone."""
        self.timers = TimerQueue()
        self.state = self.new_state()
        for record, facts in self.log:
            self.state.replay(record, facts)
        self.apply(self.state.on_loaded(self.now_ms))
