"""Metadata v0-13: the brokers, and the leaders of the partitions of some or all topics.

v0 selects all topics by an empty list, later versions by null. v4 can disable automatic creation,
v8 adds authorized operations, v12 names topics by id. Before v6 a leader without this listener is
reported as LEADER_NOT_AVAILABLE; v0 omits replicas that are down and reports an error for them.

A topic that the request creates is unknown in the first response; the client retries.
"""

from collections import Counter
from collections.abc import Hashable
from typing import NamedTuple

from headrace.broker.api.registry import Call, api
from headrace.broker.authorized_operations import NOT_REQUESTED, on_cluster, on_topic
from headrace.broker.topics.metadata_answers import Answer
from headrace.broker.topics.topology import (
    INTERNAL_TOPICS,
    NO_NODE,
    controller_for_clients,
    endpoint_of,
    leader_of,
    live_brokers,
    offline_replicas,
    why_missing,
)
from headrace.errors import (
    InvalidRequest,
    KafkaError,
    LeaderNotAvailable,
    ReplicaNotAvailable,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.metadata.image import MetadataImage, PartitionImage, TopicImage
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.codec import encode
from headrace.protocol.error_codes import error_codes_of
from headrace.protocol.schemas.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.uuids import ZERO, Uuid
from headrace.security.access import Access
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Alternative, Lacking, Right, for_each, to_list

_RIGHTS = (
    for_each(Operation.DESCRIBE, ResourceType.TOPIC, "topics by name or id"),
    to_list(Operation.DESCRIBE, ResourceType.TOPIC, "all topics"),
    for_each(
        Operation.CREATE,
        ResourceType.TOPIC,
        "automatic creation",
        (Alternative(Operation.CREATE, ResourceType.CLUSTER),),
    ),
    Right(
        Operation.DESCRIBE,
        ResourceType.CLUSTER,
        Lacking.SHOWS_NOTHING,
        "authorized operations on the cluster",
    ),
)


def _refuse(request: MetadataRequest, error: KafkaError, version: int) -> MetadataResponse:
    topics = [
        MetadataResponseTopic(error_code=error.code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=error.code)


class _Wanted(NamedTuple):
    """The topics of a request: known, unknown, and those without a right."""

    found: list[TopicImage]
    missing: list[str | Uuid]
    refused: list[MetadataResponseTopic]


@api(ApiKey.METADATA, versions=range(14), rights=_RIGHTS, refuse=_refuse)
def metadata(request: MetadataRequest, call: Call) -> MetadataResponse | bytes:
    if call.version == 0 and not request.topics:
        request.topics = None
    image = call.broker.image
    question = _question(request, call)
    kept = call.broker.metadata_answers.find(question, image)
    if kept is not None:
        return _counted(kept, call)
    wanted = _permitted(*_sort_out(request, call, image), request, call)
    if wanted.missing and request.allow_auto_topic_creation:
        _create(call, wanted)
    response = _answer(request, call, image, wanted)
    if wanted.missing or wanted.refused or not _is_concise(request, wanted):
        return response
    errors = Counter(error_codes_of(MetadataResponse)(response))
    answer = Answer(bytes(encode(response, call.version)), tuple(errors.items()))
    shown = None if request.topics is None else wanted.found
    call.broker.metadata_answers.keep(question, image, shown, answer)
    return _counted(answer, call)


def _counted(answer: Answer, call: Call) -> bytes:
    """Count the errors of a cached response, which dispatch cannot read from its bytes."""
    for code, count in answer.errors:
        call.broker.metrics.requests.failed(ApiKey.METADATA, code, count)
    return answer.body


def _question(request: MetadataRequest, call: Call) -> Hashable:
    """The parts of a request on which the response depends, and the rights of the caller."""
    topics = request.topics
    access = call.access
    return (
        call.version,
        call.listener,
        None if access.is_open else (access.caller, access.version),
        request.include_topic_authorized_operations,
        request.include_cluster_authorized_operations,
        None if topics is None else tuple([(one.name, one.topic_id) for one in topics]),
    )


def _is_concise(request: MetadataRequest, wanted: _Wanted) -> bool:
    """Return whether a request is not much larger than its response, whose size the cache bounds.

    Clients can name a topic many times, or add names to ids, which do not count then.
    """
    topics = request.topics
    return topics is None or (
        len(topics) == len(wanted.found)
        and not any(one.name and one.topic_id != ZERO for one in topics)
    )


def _sort_out(
    request: MetadataRequest, call: Call, image: MetadataImage
) -> tuple[list[TopicImage], list[str | Uuid]]:
    """The requested topics without duplicates, and the unknown names and ids.

    As in Kafka, one id in the request means that all names are ignored.
    """
    if request.topics is None:
        return list(image.topics.values()), []
    wanted = request.topics
    if call.version < 12 and any(one.name is None or one.topic_id != ZERO for one in wanted):
        raise InvalidRequest(f"Metadata v{call.version} takes names of topics, and no ids")
    ids = dict.fromkeys(one.topic_id for one in wanted if one.topic_id != ZERO)
    if ids:
        by_id = image.topics_by_id
        known = [by_id[topic_id] for topic_id in ids if topic_id in by_id]
        return known, [topic_id for topic_id in ids if topic_id not in by_id]
    if any(one.name is None for one in wanted):
        raise InvalidRequest("a topic has neither a name nor an id")
    names = dict.fromkeys(one.name or "" for one in wanted)
    known = [image.topics[name] for name in names if name in image.topics]
    return known, [name for name in names if name not in image.topics]


def _permitted(
    found: list[TopicImage], missing: list[str | Uuid], request: MetadataRequest, call: Call
) -> _Wanted:
    """Take out the topics that the caller may not see, without a hint that they exist."""
    access = call.access
    if access.is_open:
        return _Wanted(found, missing, [])
    if request.topics is None:
        return _Wanted([one for one in found if _is_listed(access, one.name)], [], [])
    names = [one.name for one in found] + [one for one in missing if isinstance(one, str)]
    hidden = set(access.denied(Operation.DESCRIBE, ResourceType.TOPIC, names))
    by_id = any(one.topic_id != ZERO for one in request.topics)
    refused = [
        _refused(None if by_id else one.name, one.id if by_id else ZERO)
        for one in found
        if one.name in hidden
    ]
    refused += [_refused(one) for one in missing if isinstance(one, str) and one in hidden]
    return _Wanted(
        [one for one in found if one.name not in hidden],
        [one for one in missing if one not in hidden],
        refused,
    )


def _is_listed(access: Access, topic: str) -> bool:
    return access.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic, is_audited=False)


def _refused(name: str | None, topic_id: Uuid = ZERO) -> MetadataResponseTopic:
    """The answer for a topic without the right repeats only what the request has."""
    return MetadataResponseTopic(
        error_code=TopicAuthorizationFailed.code, name=name, topic_id=topic_id
    )


def _create(call: Call, wanted: _Wanted) -> None:
    """Create missing topics that were requested by a valid name, if the caller may."""
    if not call.broker.settings.auto_create_topics_enable:
        return
    access = call.access
    names = [name for name in wanted.missing if isinstance(name, str)]
    if not access.allows_on_cluster(Operation.CREATE, is_audited=False):
        for name in access.denied(Operation.CREATE, ResourceType.TOPIC, tuple(names)):
            names.remove(name)
            wanted.missing.remove(name)
            row = _refused(name)
            row.is_internal = name in INTERNAL_TOPICS
            wanted.refused.append(row)
    unknown = UnknownTopicOrPartition.code
    missing = [name for name in names if why_missing(name).code == unknown]
    call.broker.topic_creation.start(missing, call.caller)


def _answer(
    request: MetadataRequest,
    call: Call,
    image: MetadataImage,
    wanted: _Wanted,
) -> MetadataResponse:
    access = call.access
    topics = [_missing_topic(key) for key in wanted.missing]
    topics += [_topic(topic, image, call) for topic in wanted.found]
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None:
                topic.topic_authorized_operations = on_topic(access, topic.name)
    asked = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker, endpoint in live_brokers(image, call.listener)
        ],
        cluster_id=call.broker.cluster_id,
        controller_id=controller_for_clients(image, call.broker.node_id),
        topics=topics + wanted.refused,
        cluster_authorized_operations=on_cluster(access) if asked else NOT_REQUESTED,
    )


def _missing_topic(key: str | Uuid) -> MetadataResponseTopic:
    if not isinstance(key, str):
        return MetadataResponseTopic(error_code=UnknownTopicId.code, name=None, topic_id=key)
    return MetadataResponseTopic(
        error_code=why_missing(key).code, name=key, is_internal=key in INTERNAL_TOPICS
    )


def _topic(topic: TopicImage, image: MetadataImage, call: Call) -> MetadataResponseTopic:
    shape = _partition_v0 if call.version == 0 else _partition
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            shape(index, partition, image, call) for index, partition in enumerate(topic.partitions)
        ],
    )


def _partition(
    index: int, partition: PartitionImage, image: MetadataImage, call: Call
) -> MetadataResponsePartition:
    error_code = 0
    try:
        leader = leader_of(image, partition, call.listener)
    except KafkaError as error:
        leader = NO_NODE
        error_code = error.code if call.version >= 6 else LeaderNotAvailable.code
    return MetadataResponsePartition(
        error_code=error_code,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=offline_replicas(image, partition, call.listener),
    )


def _partition_v0(
    index: int, partition: PartitionImage, image: MetadataImage, call: Call
) -> MetadataResponsePartition:
    shaped = _partition(index, partition, image, call)
    shaped.replica_nodes = _reachable(shaped.replica_nodes, image, call)
    shaped.isr_nodes = _reachable(shaped.isr_nodes, image, call)
    hidden = len(shaped.replica_nodes) < len(partition.replicas) or (
        len(shaped.isr_nodes) < len(partition.isr)
    )
    if hidden and not shaped.error_code:
        shaped.error_code = ReplicaNotAvailable.code
    return shaped


def _reachable(replicas: list[int], image: MetadataImage, call: Call) -> list[int]:
    brokers = ((replica, image.brokers.get(replica)) for replica in replicas)
    return [
        replica
        for replica, broker in brokers
        if broker is not None
        and not broker.fenced
        and endpoint_of(broker, call.listener) is not None
    ]
