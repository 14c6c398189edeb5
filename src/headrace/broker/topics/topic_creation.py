"""Automatic creation of topics that a client requests the metadata of.

As in Kafka, the request starts the creation without waiting for it: the response reports an unknown
topic, and the client retries until the topic exists.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.broker.topics.internal_topics import create_internal
from headrace.broker.topics.new_topics import create_topics, new_topic
from headrace.broker.topics.topology import INTERNAL_TOPICS
from headrace.errors import KafkaError

if TYPE_CHECKING:
    from headrace.broker.configs.topic_configs import TopicConfigs
    from headrace.broker.metadata import ClusterMetadata
    from headrace.runtime.tasks import Tasks
    from headrace.security.principals import Caller

_log = logging.getLogger(__name__)

_UNDER_WAY_MAX = 10_000


class TopicCreation:
    """Creates missing topics in the background, without concurrent attempts for one topic."""

    def __init__(
        self, controller: "ClusterMetadata", configs: "TopicConfigs", tasks: "Tasks"
    ) -> None:
        self._controller = controller
        self._configs = configs
        self._tasks = tasks
        self.under_way: set[str] = set()

    def start(self, names: Iterable[str], caller: "Caller | None" = None) -> None:
        """Create these topics, except those whose creation has already started.

        They count for the quota of the client that wants them.
        """
        wanted = [name for name in names if name not in self.under_way]
        wanted = wanted[: _UNDER_WAY_MAX - len(self.under_way)]
        if wanted:
            self.under_way.update(wanted)
            self._tasks.start(self._create(wanted, caller), "creation of missing topics")

    async def _create(self, names: list[str], caller: "Caller | None") -> None:
        """Create topics; a failure is only logged, since no client waits for it.

        Internal topics have their own shapes.
        """
        try:
            plain = [name for name in names if name not in INTERNAL_TOPICS]
            await self._create_plain(plain, caller)
            for name in INTERNAL_TOPICS.intersection(names):
                await create_internal(self._controller, self._configs, name)
        except KafkaError as error:
            _log.warning(
                "topics not created automatically",
                extra={"topics": ",".join(names), "error": str(error)},
            )
        finally:
            self.under_way.difference_update(names)

    async def _create_plain(self, names: list[str], caller: "Caller | None") -> None:
        if not names:
            return
        topics = [new_topic(name) for name in names]
        errors = await create_topics(self._controller, topics, caller)
        for name, error in errors.items():
            if error is None:
                _log.info("topic created automatically", extra={"topic": name})
            else:
                _log.info(
                    "topic not created automatically", extra={"topic": name, "error": str(error)}
                )
