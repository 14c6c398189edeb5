"""Topics that come into being because a client asked for them.

As in Kafka, asking starts the creation and waits for nothing: the client is told that the topic is
unknown, which it takes as a reason to ask again, and finds it then.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.broker.configs.config_layers import rules_of
from headrace.broker.topics.internal_topics import create_internal
from headrace.broker.topics.topology import INTERNAL_TOPICS
from headrace.controller.topics import create_topics
from headrace.errors import KafkaError, TopicAlreadyExists
from headrace.protocol.schemas.create_topics import CreatableTopic

if TYPE_CHECKING:
    from headrace.broker.node import Broker

_log = logging.getLogger(__name__)

_BROKER_DEFAULT = -1
_UNDER_WAY_MAX = 10_000


class TopicCreation:
    """Creates missing topics in the background, each of them once at a time."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.under_way: set[str] = set()

    def start(self, names: Iterable[str]) -> None:
        """Have these topics created; a client that asks meanwhile changes nothing."""
        wanted = [name for name in names if name not in self.under_way]
        wanted = wanted[: _UNDER_WAY_MAX - len(self.under_way)]
        if wanted:
            self.under_way.update(wanted)
            self._broker.tasks.start(self._create(wanted), "creation of missing topics")

    async def _create(self, names: list[str]) -> None:
        """One that cannot be is simply not there after: the reason goes to the log.

        The client asked what there is, not to create anything. Internal topics have a shape that
        only those who keep them know.
        """
        try:
            await self._create_plain([name for name in names if name not in INTERNAL_TOPICS])
            for name in INTERNAL_TOPICS.intersection(names):
                await create_internal(self._broker, name)
        except KafkaError as error:
            _log.warning("topics that a client asked for were not created: %s", error)
        finally:
            self.under_way.difference_update(names)

    async def _create_plain(self, names: list[str]) -> None:
        if not names:
            return
        wanted = [
            CreatableTopic(
                name=name, num_partitions=_BROKER_DEFAULT, replication_factor=_BROKER_DEFAULT
            )
            for name in names
        ]
        controller, rules = self._broker.controller, rules_of(self._broker)
        results = await controller.submit(
            lambda image: create_topics(image, wanted, controller.defaults, rules)
        )
        for result in results:
            if result.error is None:
                _log.info("created topic %s, which a client asked for", result.name)
            elif not isinstance(result.error, TopicAlreadyExists):
                _log.info("topic %s, which a client asked for: %s", result.name, result.error)
