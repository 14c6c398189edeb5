"""Dead letters: records that a share group gives up are copied to another topic (KIP-1191).

There is no queue beside the state: a record that is given up is *archiving*, which is written and
counts against the group's records in flight, until its letter is in the dead letter topic. So the
backlog has the bound of the group. After a crash at any point the record is still archiving, and
the next leader writes its letter: at least once.

A letter that cannot be written now is retried. Where a retry cannot help, because the topic is
missing and may not be created or does not admit letters, the record is archived without a letter,
and a log event contains the necessary change.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from headrace.broker.topics.new_topics import create_topics, new_topic
from headrace.errors import CorruptMessage, HeadraceError, KafkaError, UnknownTopicOrPartition
from headrace.metadata.image import ResourceType
from headrace.protocol.batches import Record, headers, records_of
from headrace.shares.dead_letters import Origin, dead_letter, letter_batches
from headrace.shares.partition import Acquired
from headrace.storage.topic_partition import TopicPartition

if TYPE_CHECKING:
    from headrace.broker.configs.topic_configs import TopicConfigs
    from headrace.broker.leaders import Leaders
    from headrace.broker.metadata import ClusterMetadata
    from headrace.broker.shares.led_partition import LedSharePartition
    from headrace.broker.shares.rules import GroupRules
    from headrace.replication.partition import Partition
    from headrace.runtime.clock import Clock
    from headrace.runtime.tasks import Tasks

_log = logging.getLogger(__name__)

_LETTERS_PER_BATCH = 100
_READ_BYTES = 1 << 20
_BACKOFF_S = 0.2
_BACKOFF_S_MAX = 30.0
_ADMITS = "errors.deadletterqueue.group.enable"


class NoDeadLetterTopic(HeadraceError):
    """The group's dead letter topic admits no letters until its configs or topics change."""


class Shares(Protocol):
    """The share partitions whose letters are written."""

    def rules_of(self, group_id: str) -> "GroupRules": ...

    async def archive(self, led: "LedSharePartition", letter: Acquired) -> None: ...

    def letters_written(self, led: "LedSharePartition") -> None: ...


class DeadLetters:
    """Writes the letters of all share partitions of this node, each in its own order."""

    def __init__(
        self,
        shares: Shares,
        leaders: "Leaders",
        controller: "ClusterMetadata",
        configs: "TopicConfigs",
        clock: "Clock",
        tasks: "Tasks",
    ) -> None:
        self._shares = shares
        self._leaders = leaders
        self._controller = controller
        self._configs = configs
        self._clock = clock
        self._tasks = tasks
        self._writing: set[LedSharePartition] = set()
        self.written = 0

    def collect(self, led: "LedSharePartition") -> None:
        """Start to write the letters of a share partition that has archiving records."""
        if led in self._writing or led.core is None or not led.core.archiving():
            return
        self._writing.add(led)
        self._tasks.start(self._write_all(led), f"dead letters of {led.name}")

    def is_writing(self, led: "LedSharePartition") -> bool:
        return led in self._writing

    async def _write_all(self, led: "LedSharePartition") -> None:
        backoff_s = _BACKOFF_S
        try:
            while led.is_live and led.core is not None and (waiting := led.core.archiving()):
                try:
                    for one in _in_batches(waiting):
                        await self._deliver(led, one)
                except KafkaError as error:
                    _log.warning(
                        "dead letters not written, retrying",
                        extra=led.log_fields | {"error": str(error)},
                    )
                    await asyncio.sleep(backoff_s)
                    backoff_s = min(2 * backoff_s, _BACKOFF_S_MAX)
                else:
                    backoff_s = _BACKOFF_S
        finally:
            self._writing.discard(led)
        self._shares.letters_written(led)

    async def _deliver(self, led: "LedSharePartition", letter: Acquired) -> None:
        rules = self._shares.rules_of(led.key.group_id)
        try:
            target = await self._target(led, rules)
        except NoDeadLetterTopic as error:
            _log.warning(
                "records archived without a dead letter",
                extra=led.log_fields
                | {"first_offset": letter.first, "last_offset": letter.last, "error": str(error)},
            )
        else:
            await self._produce(target, self._letters(led, letter, rules))
        await self._shares.archive(led, letter)

    async def _produce(self, target: TopicPartition, letters: list[Record]) -> None:
        """Write letters to the leader of their partition; returns when they are committed."""
        if not letters:
            return  # The log has deleted the records meanwhile.
        size_max = self._configs.of(self._controller.image, target.topic).max_message_bytes
        for batch in letter_batches(letters, size_max):
            await self._leaders.produce(*target, batch)
        self.written += len(letters)

    def _letters(
        self, led: "LedSharePartition", letter: Acquired, rules: "GroupRules"
    ) -> list[Record]:
        partition = led.partition
        origin = Origin(led.key.group_id, partition.topic.name, partition.index)
        limit = rules.limits.delivery_count_limit
        now_ms = self._clock.now_ms()
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

    async def _target(self, led: "LedSharePartition", rules: "GroupRules") -> TopicPartition:
        """Return the partition for the letters; one per source partition keeps their order."""
        name = rules.settings.dead_letter_topic
        image = self._controller.image
        if not name:
            raise NoDeadLetterTopic("the group has no dead letter topic any more")
        prefix = self._configs.settings.errors_deadletterqueue_topic_name_prefix
        if not name.startswith(prefix):
            raise NoDeadLetterTopic(
                f"{name} does not begin with {prefix} (errors.deadletterqueue.topic.name.prefix)"
            )
        if name not in image.topics:
            await self._create(name)
            image = self._controller.image
        topic = image.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"{name} has not reached this broker yet")
        if image.configs_of(ResourceType.TOPIC, name).get(_ADMITS) != "true":
            raise NoDeadLetterTopic(f"set {_ADMITS}=true on {name} to admit dead letters")
        index = led.partition.index % len(topic.partitions)
        return TopicPartition(name, index)

    async def _create(self, name: str) -> None:
        if not self._configs.settings.errors_deadletterqueue_auto_create_topics_enable:
            raise NoDeadLetterTopic(
                f"there is no topic {name}; create it with {_ADMITS}=true, or set "
                "errors.deadletterqueue.auto.create.topics.enable"
            )
        configs = {_ADMITS: "true", "message.timestamp.type": "CreateTime"}
        errors = await create_topics(self._controller, [new_topic(name, configs=configs)])
        if (error := errors.get(name)) is not None:
            raise error
        _log.info("dead letter topic created", extra={"topic": name})


def _in_batches(letters: list[Acquired]) -> Iterator[Acquired]:
    """Split letters into ranges of one batch each."""
    for first, last, count in letters:
        for begin in range(first, last + 1, _LETTERS_PER_BATCH):
            yield Acquired(begin, min(last, begin + _LETTERS_PER_BATCH - 1), count)
