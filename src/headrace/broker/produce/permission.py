"""The rights of a producer: checked before any batch reaches a log or a coordinator."""

from typing import TYPE_CHECKING

from headrace.broker.produce.admission import is_transactional, topics_by_key
from headrace.protocol.hot_produce import TOPIC_IDS_FROM, ProduceView, TopicKey
from headrace.security.acls import Operation, ResourceType

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.security.access import Access


def check_transaction(request: ProduceView, access: "Access") -> None:
    """Raise if a request has records of a transaction whose id the client may not use."""
    if request.transactional_id is not None and any(
        is_transactional(records) for _, record_sets in request.topics for _, records in record_sets
    ):
        access.check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)


def forbidden_topics(
    broker: "Broker", request: ProduceView, version: int, access: "Access"
) -> frozenset[TopicKey]:
    """Return the topics that the client may not write to, known or not.

    An unknown id has no name, so no right to it can be missing.
    """
    hosted = topics_by_key(broker, version)
    forbidden = []
    for key, _ in request.topics:
        topic = hosted.get(key)
        if topic is None and version >= TOPIC_IDS_FROM:
            continue
        name = key.decode(errors="replace") if topic is None else topic.name
        if not access.allows(Operation.WRITE, ResourceType.TOPIC, name):
            forbidden.append(key)
    return frozenset(forbidden)
