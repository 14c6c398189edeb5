"""Records that a share group gives up, on their way to the group's dead letter topic (KIP-1191).

There is no queue beside the state: a record that is given up is *archiving*, which is written and
counts against the group's records in flight, until its letter is in the dead letter topic. So the
backlog has the bound that the group has, and a crash at any point leaves the record archiving, to
be written by the next leader: at least once.

A letter that cannot be written now is tried again. Where no try could help, because the topic is
missing and may not be created or does not admit letters, the record is archived without one, and
the broker's log says what to change.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.broker.configs.config_layers import rules_of
from headrace.controller.topics import create_topics
from headrace.errors import (
    CorruptMessage,
    HeadraceError,
    KafkaError,
    NotLeaderOrFollower,
    TopicAlreadyExists,
)
from headrace.metadata.image import ResourceType
from headrace.protocol.batches import Record, headers, records_of
from headrace.protocol.schemas.create_topics import CreatableTopic, CreatableTopicConfig
from headrace.shares.dead_letters import Origin, dead_letter, letter_batches
from headrace.shares.partition import Acquired

if TYPE_CHECKING:
    from headrace.broker.node import Broker
    from headrace.broker.partitions import Partition
    from headrace.broker.shares.partitions import LedSharePartition, SharePartitions
    from headrace.broker.shares.rules import GroupRules

_log = logging.getLogger(__name__)

_BROKER_DEFAULT = -1
_LETTERS_PER_BATCH = 100
_READ_BYTES = 1 << 20
_BACKOFF_S = 0.2
_BACKOFF_S_MAX = 30.0
_ADMITS = "errors.deadletterqueue.group.enable"


class NoDeadLetterTopic(HeadraceError):
    """The group's dead letter topic takes no letters, and will not until somebody changes it."""


class DeadLetters:
    """Writes the letters of all share partitions of this node, each in its own order."""

    def __init__(self, broker: "Broker", shares: "SharePartitions") -> None:
        self._broker = broker
        self._shares = shares
        self._at_work: set[LedSharePartition] = set()
        self.written = 0

    def collect(self, led: "LedSharePartition") -> None:
        """Some records of a share partition may be archiving: see to them, if nobody does."""
        if led in self._at_work or led.core is None or not led.core.archiving():
            return
        self._at_work.add(led)
        self._broker.tasks.start(self._work_off(led), f"dead letters of {led.name}")

    def is_at_work(self, led: "LedSharePartition") -> bool:
        return led in self._at_work

    async def _work_off(self, led: "LedSharePartition") -> None:
        backoff_s = _BACKOFF_S
        try:
            while led.is_live and led.core is not None and (waiting := led.core.archiving()):
                try:
                    for one in _divided(waiting):
                        await self._deliver(led, one)
                except KafkaError as error:
                    _log.warning("dead letters of %s wait: %s", led.name, error)
                    await asyncio.sleep(backoff_s)
                    backoff_s = min(2 * backoff_s, _BACKOFF_S_MAX)
                else:
                    backoff_s = _BACKOFF_S
        finally:
            self._at_work.discard(led)
        self._shares.letters_written(led)

    async def _deliver(self, led: "LedSharePartition", letter: Acquired) -> None:
        rules = self._shares.rules_of(led.key.group_id)
        try:
            target = await self._target(led, rules)
        except NoDeadLetterTopic as error:
            _log.warning(
                "offsets %d to %d of %s are archived without a dead letter: %s",
                letter.first,
                letter.last,
                led.name,
                error,
            )
        else:
            self._append(target, self._letters(led, letter, rules))
        await self._shares.archive(led, letter)

    def _append(self, target: "Partition", letters: list[Record]) -> None:
        if not letters:
            return  # The log has lost the records meanwhile, and with them the reason to write.
        size_max = target.online_log().config.max_message_bytes
        for batch in letter_batches(letters, size_max):
            target.append(memoryview(batch), self._broker.clock.now_ms())
        self.written += len(letters)
        if target.waiters:
            self._broker.wake_ups.changed(target)

    def _letters(
        self, led: "LedSharePartition", letter: Acquired, rules: "GroupRules"
    ) -> list[Record]:
        partition = led.partition
        origin = Origin(led.key.group_id, partition.topic.name, partition.index)
        limit = rules.limits.delivery_count_limit
        now_ms = self._broker.clock.now_ms()
        found = {record.offset: record for record in self._records(partition, letter)}
        copies = rules.settings.copies_dead_letters
        return [
            dead_letter(
                origin, offset, letter.delivery_count, limit, now_ms, record if copies else None
            )
            for offset, record in found.items()
        ]

    @staticmethod
    def _records(partition: "Partition", letter: Acquired) -> Iterator[Record]:
        log = partition.online_log()
        offset = first = max(letter.first, log.log_start_offset)
        while offset <= letter.last and offset < log.log_end_offset:
            data = log.read(offset, _READ_BYTES, log.log_end_offset).read()
            read_from = offset
            for position, header in headers(data):
                if header.base_offset > letter.last:
                    return
                if not header.is_control:
                    for record in records_of(data, position):
                        if first <= record.offset <= letter.last:
                            yield record
                offset = header.next_offset
            if not data:
                return
            if offset <= read_from:
                raise CorruptMessage(f"no batch can be read at offset {offset}")

    # --- the topic ------------------------------------------------------------------------------

    async def _target(self, led: "LedSharePartition", rules: "GroupRules") -> "Partition":
        """Where the letters of a partition go, so that they stay in order."""
        name = rules.settings.dead_letter_topic
        broker = self._broker
        if not name:
            raise NoDeadLetterTopic("the group has no dead letter topic any more")
        prefix = broker.settings.errors_deadletterqueue_topic_name_prefix
        if not name.startswith(prefix):
            raise NoDeadLetterTopic(
                f"{name} does not begin with {prefix} (errors.deadletterqueue.topic.name.prefix)"
            )
        if name not in broker.image.topics:
            await self._create(name)
        topic = broker.image.topics[name]
        if broker.image.configs_of(ResourceType.TOPIC, name).get(_ADMITS) != "true":
            raise NoDeadLetterTopic(f"set {_ADMITS}=true on {name} to admit dead letters")
        index = led.partition.index % len(topic.partitions)
        if topic.partitions[index].leader != broker.node_id:
            raise NotLeaderOrFollower(f"{name}-{index} is led by another broker")
        return broker.partitions.find(name, index)

    async def _create(self, name: str) -> None:
        broker = self._broker
        if not broker.settings.errors_deadletterqueue_auto_create_topics_enable:
            raise NoDeadLetterTopic(
                f"there is no topic {name}; create it with {_ADMITS}=true, or set "
                "errors.deadletterqueue.auto.create.topics.enable"
            )
        wanted = CreatableTopic(
            name=name,
            num_partitions=_BROKER_DEFAULT,
            replication_factor=_BROKER_DEFAULT,
            configs=[
                CreatableTopicConfig(name=_ADMITS, value="true"),
                CreatableTopicConfig(name="message.timestamp.type", value="CreateTime"),
            ],
        )
        controller, rules = broker.controller, rules_of(broker)
        (result,) = await controller.submit(
            lambda image: create_topics(image, [wanted], controller.defaults, rules)
        )
        if result.error is not None and not isinstance(result.error, TopicAlreadyExists):
            raise result.error
        _log.info("created the dead letter topic %s", name)


def _divided(letters: list[Acquired]) -> Iterator[Acquired]:
    """Letters in rows that make a batch each."""
    for first, last, count in letters:
        for begin in range(first, last + 1, _LETTERS_PER_BATCH):
            yield Acquired(begin, min(last, begin + _LETTERS_PER_BATCH - 1), count)
