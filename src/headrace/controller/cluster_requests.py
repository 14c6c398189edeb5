"""Requests about configs, features, brokers and elections, from request to response."""

from collections import Counter
from collections.abc import Iterable, Sequence

from headrace.controller import configs, elections, features, registration
from headrace.controller.configs import ConfigResult, Requested
from headrace.controller.decision import Decision
from headrace.controller.elections import ElectionResult
from headrace.controller.features import FeatureUpdate, UpgradeType
from headrace.controller.requests import Context
from headrace.errors import InvalidRequest, KafkaError
from headrace.metadata.image import ConfigResource, MetadataImage
from headrace.metadata.image import ResourceType as ConfigOwner
from headrace.protocol.schemas import alter_configs as replacing
from headrace.protocol.schemas import incremental_alter_configs as incremental
from headrace.protocol.schemas.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from headrace.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from headrace.protocol.schemas.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from headrace.security.access import Access
from headrace.security.acls import CLUSTER_NAME, Operation, ResourceType

_OWNERS: dict[int, ResourceType] = {
    ConfigOwner.TOPIC: ResourceType.TOPIC,
    ConfigOwner.GROUP: ResourceType.GROUP,
    ConfigOwner.BROKER: ResourceType.CLUSTER,
    ConfigOwner.CLIENT_METRICS: ResourceType.CLUSTER,
}
"""The resource on which the change of a config needs the right ALTER_CONFIGS."""


def alter_configs(
    image: MetadataImage, request: replacing.AlterConfigsRequest, context: Context
) -> Decision[replacing.AlterConfigsResponse]:
    allowed, denied = _by_right(request.resources, context.access)
    records, results = configs.alter_configs(
        image, allowed, context.rules(image), validate_only=request.validate_only
    )
    rows = _config_rows(request.resources, [*results, *denied])
    answers = [replacing.AlterConfigsResourceResponse(*row) for row in rows]
    return Decision(records, replacing.AlterConfigsResponse(responses=answers))


def incremental_alter_configs(
    image: MetadataImage, request: incremental.IncrementalAlterConfigsRequest, context: Context
) -> Decision[incremental.IncrementalAlterConfigsResponse]:
    allowed, denied = _by_right(request.resources, context.access)
    records, results = configs.incremental_alter_configs(
        image, allowed, context.rules(image), validate_only=request.validate_only
    )
    rows = _config_rows(request.resources, [*results, *denied])
    answers = [incremental.AlterConfigsResourceResponse(*row) for row in rows]
    return Decision(records, incremental.IncrementalAlterConfigsResponse(responses=answers))


def _by_right(
    resources: Sequence[Requested], access: Access
) -> tuple[list[Requested], list[ConfigResult]]:
    """Return the resources that the caller may change, and the results of all others.

    As in Kafka, resources that are invalid in any case are among the first.
    """
    allowed, denied = [], []
    counts = Counter((one.resource_type, one.resource_name) for one in resources)
    for one in resources:
        resource = ConfigResource(one.resource_type, one.resource_name)
        rightful = _OWNERS.get(one.resource_type)
        try:
            if rightful is not None and counts[resource] == 1:
                name = CLUSTER_NAME if rightful is ResourceType.CLUSTER else resource.name
                access.check(Operation.ALTER_CONFIGS, rightful, name)
        except KafkaError as error:
            denied.append(ConfigResult(resource, error))
        else:
            allowed.append(one)
    return allowed, denied


def _config_rows(
    requested: Iterable[configs.RequestedResource], results: Iterable[ConfigResult]
) -> Iterable[tuple[int, str | None, int, str]]:
    """Yield code, message, type and name of each resource, in the order of the request."""
    errors = {one.resource: one.error for one in results}
    for key in dict.fromkeys((one.resource_type, one.resource_name) for one in requested):
        error = errors[ConfigResource(*key)]
        code, message = (error.code, str(error)) if error else (0, None)
        yield code, message, *key


def update_features(
    image: MetadataImage, request: UpdateFeaturesRequest, context: Context
) -> Decision[UpdateFeaturesResponse]:
    updates = [_update(one, context.version) for one in request.feature_updates]
    records, _ = features.update_features(
        image,
        updates,
        context.kraft_version,
        context.defaults,
        validate_only=request.validate_only,
    )
    results = [UpdatableFeatureResult(feature=one.feature) for one in updates]
    response = UpdateFeaturesResponse(
        error_message=None, results=results if context.version < 2 else []
    )
    return Decision(records, response)


def _update(update: FeatureUpdateKey, version: int) -> FeatureUpdate:
    upgrade_type = update.upgrade_type
    if version == 0:
        may_lower = update.allow_downgrade
        upgrade_type = UpgradeType.SAFE_DOWNGRADE if may_lower else UpgradeType.UPGRADE
    return FeatureUpdate(update.feature, update.max_version_level, upgrade_type)


def unregister_broker(
    image: MetadataImage, request: UnregisterBrokerRequest, context: Context
) -> Decision[UnregisterBrokerResponse]:
    if request.broker_id == context.node_id:
        # The next heartbeat registers a Kafka broker again; ours is the controller as well.
        raise InvalidRequest("a node that is its own controller cannot be unregistered; stop it")
    records, _ = registration.unregister_broker(image, request.broker_id, context.defaults)
    return Decision(records, UnregisterBrokerResponse(error_message=None))


def elect_leaders(
    image: MetadataImage, request: ElectLeadersRequest, context: Context
) -> Decision[ElectLeadersResponse]:
    records, results = elections.elect_leaders(
        image, request.election_type, request.topic_partitions, context.defaults
    )
    return Decision(records, ElectLeadersResponse(replica_election_results=by_topic(results)))


def by_topic(results: Iterable[ElectionResult]) -> list[ReplicaElectionResult]:
    """Group the results of single partitions by topic, as in the response."""
    topics: dict[str, ReplicaElectionResult] = {}
    for result in results:
        if result.topic not in topics:
            topics[result.topic] = ReplicaElectionResult(topic=result.topic)
        topics[result.topic].partition_result.append(
            PartitionResult(
                partition_id=result.partition,
                error_code=result.error.code if result.error else 0,
                error_message=str(result.error) if result.error else None,
            )
        )
    return list(topics.values())
