"""StreamsGroupHeartbeat v0: a member of a streams group is there, and gets its tasks (KIP-1071)."""

import logging
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from headrace.broker.api.registry import Call, api
from headrace.broker.configs.config_layers import rules_of
from headrace.controller.topics import create_topics
from headrace.errors import KafkaError, TopicAlreadyExists
from headrace.groups.consumer_context import Client
from headrace.groups.streams import check_request, serve_heartbeat
from headrace.groups.streams_replies import Answer
from headrace.groups.streams_topology import InternalTopic
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.create_topics import CreatableTopic, CreatableTopicConfig
from headrace.protocol.schemas.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from headrace.broker.node import Broker

log = logging.getLogger(__name__)


@api(ApiKey.STREAMS_GROUP_HEARTBEAT, versions=range(1))
def streams_group_heartbeat(
    request: StreamsGroupHeartbeatRequest, call: Call
) -> StreamsGroupHeartbeatResponse | Coroutine[Any, Any, StreamsGroupHeartbeatResponse]:
    broker = call.broker
    check_request(request)
    shard = broker.groups.shard_for(request.group_id)
    client = Client(call.client_id or "", f"/{call.peer.host}")
    effects = serve_heartbeat(shard.state, request, client, broker.clock.now_ms())
    answer = shard.carry_out(effects)
    if isinstance(answer, Answer) and not answer.missing:
        return answer.response
    return _finish(broker, answer)


async def _finish(
    broker: "Broker", answer: Answer | Coroutine[Any, Any, Answer] | None
) -> StreamsGroupHeartbeatResponse:
    """Create what the application lacks before its member hears of it: it will ask again soon."""
    told = answer if isinstance(answer, Answer) else await answer if answer is not None else None
    assert told is not None
    if told.missing:
        await _create(broker, told.missing)
    return told.response


async def _create(broker: "Broker", topics: Sequence[InternalTopic]) -> None:
    wanted = [
        CreatableTopic(
            name=one.name,
            num_partitions=one.partitions,
            replication_factor=one.replication_factor,
            configs=[CreatableTopicConfig(name, value) for name, value in one.configs],
        )
        for one in topics
    ]
    controller, rules = broker.controller, rules_of(broker)
    try:
        results = await controller.submit(
            lambda image: create_topics(image, wanted, controller.defaults, rules)
        )
    except KafkaError as error:
        log.warning("internal topics of a streams group were not created: %s", error)
        return
    for result in results:
        if result.error is not None and not isinstance(result.error, TopicAlreadyExists):
            log.warning("internal topic %s was not created: %s", result.name, result.error)
