"""Topics that come into being because a client asked for them."""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.broker.config_layers import rules_of
from headrace.broker.topology import INTERNAL_TOPICS
from headrace.controller.topics import create_topics
from headrace.errors import KafkaError, TopicAlreadyExists
from headrace.protocol.schemas.create_topics import CreatableTopic

if TYPE_CHECKING:
    from headrace.broker.node import Broker

_log = logging.getLogger(__name__)

_BROKER_DEFAULT = -1


async def create_missing(broker: "Broker", names: Iterable[str]) -> None:
    """Create topics with the broker's defaults; one that cannot be is simply not there after.

    The client asked what there is, not to create anything, so the reason goes to the log.
    Internal topics are created by those who keep them, in a shape that only they know.
    """
    wanted = [
        CreatableTopic(
            name=name, num_partitions=_BROKER_DEFAULT, replication_factor=_BROKER_DEFAULT
        )
        for name in names
        if name not in INTERNAL_TOPICS
    ]
    if not wanted:
        return
    controller, rules = broker.controller, rules_of(broker)
    try:
        results = await controller.submit(
            lambda image: create_topics(image, wanted, controller.defaults, rules)
        )
    except KafkaError as error:
        _log.warning("topics that a client asked for were not created: %s", error)
        return
    for result in results:
        if result.error is None:
            _log.info("created topic %s, which a client asked for", result.name)
        elif not isinstance(result.error, TopicAlreadyExists):
            _log.info("topic %s, which a client asked for: %s", result.name, result.error)
