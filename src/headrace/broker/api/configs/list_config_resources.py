"""ListConfigResources v0-1: the names of everything that has configs (KIP-1142).

v0 lists only client metrics, under the former name ListClientMetricsResources.
"""

from collections.abc import Iterable

from headrace.broker.api.registry import Call, api
from headrace.controller.configs import CONFIG_RESOURCES
from headrace.errors import UnsupportedVersion
from headrace.metadata.image import MetadataImage, ResourceType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from headrace.security import acls
from headrace.security.acls import Operation
from headrace.security.rights import for_request

_RIGHTS = (for_request(Operation.DESCRIBE_CONFIGS, acls.ResourceType.CLUSTER),)


@api(ApiKey.LIST_CONFIG_RESOURCES, versions=range(2), rights=_RIGHTS)
def list_config_resources(
    request: ListConfigResourcesRequest, call: Call
) -> ListConfigResourcesResponse:
    call.access.check_on_cluster(Operation.DESCRIBE_CONFIGS)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in _asked(request, call.version)
            for name in _names(kind, call.broker.image)
        ]
    )


def _asked(request: ListConfigResourcesRequest, version: int) -> Iterable[ResourceType]:
    if version == 0:
        return (ResourceType.CLIENT_METRICS,)
    if not request.resource_types:
        return ResourceType
    try:
        return dict.fromkeys(ResourceType(kind) for kind in request.resource_types)
    except ValueError:
        raise UnsupportedVersion(
            f"a resource type that has no configs; {CONFIG_RESOURCES}"
        ) from None


def _names(kind: ResourceType, image: MetadataImage) -> Iterable[str]:
    match kind:
        case ResourceType.TOPIC:
            return image.topics
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(broker) for broker in image.brokers]
        case ResourceType.CLIENT_METRICS | ResourceType.GROUP:
            return [
                name
                for (type_, name), configs in image.configs.items()
                if type_ == kind and configs
            ]
