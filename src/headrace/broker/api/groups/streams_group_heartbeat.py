"""StreamsGroupHeartbeat v0: keep a member of a streams group alive and assign it (KIP-1071)."""

import logging
from collections.abc import Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from headrace.broker.api.groups.subscribing import check_subscription
from headrace.broker.api.registry import Call, api
from headrace.broker.topics.new_topics import create_topics, new_topic
from headrace.errors import KafkaError
from headrace.groups.epochs.heartbeat import Answer, Client
from headrace.groups.streams.protocol import check_request, serve_heartbeat
from headrace.groups.streams.replies import StreamsAnswer
from headrace.groups.streams.topology import InternalTopic, StatusCode
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.streams_group_heartbeat import Status as SentStatus
from headrace.protocol.schemas.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Alternative, Lacking, Right, for_request

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

_log = logging.getLogger(__name__)

_RIGHTS = (
    for_request(Operation.READ, ResourceType.GROUP),
    for_request(Operation.DESCRIBE, ResourceType.TOPIC, "all topics of the topology"),
    Right(
        Operation.CREATE,
        ResourceType.TOPIC,
        Lacking.REFUSES_RESOURCE,
        "missing internal topics",
        (Alternative(Operation.CREATE, ResourceType.CLUSTER),),
        "status `MISSING_INTERNAL_TOPICS`, and none is created",
    ),
)


@api(ApiKey.STREAMS_GROUP_HEARTBEAT, versions=range(1), rights=_RIGHTS)
def streams_group_heartbeat(
    request: StreamsGroupHeartbeatRequest, call: Call
) -> StreamsGroupHeartbeatResponse | Coroutine[Any, Any, StreamsGroupHeartbeatResponse]:
    broker = call.broker
    if broker.authorizer is not None:
        check_subscription(request.group_id, _topics(request.topology), call)
    check_request(request)
    shard = broker.groups.shard_for(request.group_id)
    client = Client(call.client_id or "", f"/{call.peer.host}")
    effects = serve_heartbeat(shard.state, request, client, broker.clock.now_ms())
    answer = shard.apply(effects)
    if isinstance(answer, Answer) and not answer.needs:
        return answer.response
    return _finish(call, answer)


def _topics(topology: Topology | None) -> Iterator[str]:
    for one in topology.subtopologies if topology is not None else ():
        yield from one.source_topics
        yield from one.repartition_sink_topics
        yield from (topic.name for topic in one.repartition_source_topics)
        yield from (topic.name for topic in one.state_changelog_topics)


async def _finish(
    call: Call, answer: StreamsAnswer | Coroutine[Any, Any, StreamsAnswer] | None
) -> StreamsGroupHeartbeatResponse:
    """Create missing topics of the application, then respond."""
    assert answer is not None  # A heartbeat always has a reply.
    decided = await answer if isinstance(answer, Coroutine) else answer
    if decided.needs:
        forbidden = _forbidden(decided.needs, call)
        if forbidden:
            return _explained(decided.response, forbidden)
        await _create(call.broker, decided.needs)
    return decided.response


def _forbidden(topics: Sequence[InternalTopic], call: Call) -> list[str]:
    """The topics that the client may not create."""
    if call.access.allows_on_cluster(Operation.CREATE, is_audited=False):
        return []
    names = [one.name for one in topics]
    return list(call.access.denied(Operation.CREATE, ResourceType.TOPIC, names))


def _explained(
    response: StreamsGroupHeartbeatResponse, forbidden: list[str]
) -> StreamsGroupHeartbeatResponse:
    """Report in the status that topics are missing for lack of a right, in Kafka's words."""
    detail = f"Unauthorized to CREATE on topics {', '.join(forbidden)}."
    statuses = list(response.status or ())
    for place, one in enumerate(statuses):
        if one.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            detail = f"{one.status_detail}; {detail}"
            statuses[place] = SentStatus(StatusCode.MISSING_INTERNAL_TOPICS, detail)
            break
    else:
        statuses.append(SentStatus(StatusCode.MISSING_INTERNAL_TOPICS, detail))
    return msgspec.structs.replace(response, status=statuses)


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
