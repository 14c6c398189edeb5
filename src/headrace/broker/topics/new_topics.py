"""The creation of topics that the broker itself requests from the controller."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from headrace.controller.requests import error_in
from headrace.errors import KafkaError, TopicAlreadyExists
from headrace.protocol.schemas.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from headrace.broker.metadata import ClusterMetadata
    from headrace.security.principals import Caller

_BROKER_DEFAULT = -1


def new_topic(
    name: str,
    partitions: int = _BROKER_DEFAULT,
    replication_factor: int = _BROKER_DEFAULT,
    configs: Mapping[str, str] | Iterable[tuple[str, str]] = (),
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreatableTopicConfig(name, value) for name, value in dict(configs).items()],
    )


async def create_topics(
    controller: "ClusterMetadata", topics: list[CreatableTopic], caller: "Caller | None" = None
) -> dict[str, KafkaError | None]:
    """Create topics; return the error of each, or None. Existing topics are left out."""
    response: CreateTopicsResponse = await controller.ask(
        CreateTopicsRequest(topics), caller=caller
    )
    errors = {result.name: error_in(result) for result in response.topics}
    return {
        name: error for name, error in errors.items() if not isinstance(error, TopicAlreadyExists)
    }
