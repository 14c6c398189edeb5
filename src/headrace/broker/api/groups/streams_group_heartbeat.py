"""StreamsGroupHeartbeat v0: keep a member of a streams group alive and assign it (KIP-1071)."""

import logging
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from headrace.broker.api.registry import Call, api
from headrace.broker.topics.new_topics import create_topics, new_topic
from headrace.errors import KafkaError
from headrace.groups.epochs.heartbeat import Answer, Client
from headrace.groups.streams.protocol import check_request, serve_heartbeat
from headrace.groups.streams.replies import StreamsAnswer
from headrace.groups.streams.topology import InternalTopic
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

_log = logging.getLogger(__name__)


@api(ApiKey.STREAMS_GROUP_HEARTBEAT, versions=range(1))
def streams_group_heartbeat(
    request: StreamsGroupHeartbeatRequest, call: Call
) -> StreamsGroupHeartbeatResponse | Coroutine[Any, Any, StreamsGroupHeartbeatResponse]:
    broker = call.broker
    check_request(request)
    shard = broker.groups.shard_for(request.group_id)
    client = Client(call.client_id or "", f"/{call.peer.host}")
    effects = serve_heartbeat(shard.state, request, client, broker.clock.now_ms())
    answer = shard.apply(effects)
    if isinstance(answer, Answer) and not answer.needs:
        return answer.response
    return _finish(broker, answer)


async def _finish(
    broker: "Broker", answer: StreamsAnswer | Coroutine[Any, Any, StreamsAnswer] | None
) -> StreamsGroupHeartbeatResponse:
    """Create missing topics of the application, then respond."""
    assert answer is not None  # A heartbeat always has a reply.
    decided = await answer if isinstance(answer, Coroutine) else answer
    if decided.needs:
        await _create(broker, decided.needs)
    return decided.response


async def _create(broker: "Broker", topics: Sequence[InternalTopic]) -> None:
    wanted = [
        new_topic(one.name, one.partitions, one.replication_factor, one.configs) for one in topics
    ]
    try:
        errors = await create_topics(broker.controller, wanted)
    except KafkaError as error:
        names = ",".join(one.name for one in topics)
        _log.warning(
            "internal topics of a streams group not created",
            extra={"topics": names, "error": str(error)},
        )
        return
    for name, refusal in errors.items():
        if refusal is not None:
            _log.warning(
                "internal topic of a streams group not created",
                extra={"topic": name, "error": str(refusal)},
            )
