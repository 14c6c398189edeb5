"""DescribeCluster of a controller: the nodes of the quorum, for tools that connect to it."""

from headrace.errors import MismatchedEndpointType, UnsupportedEndpointType
from headrace.metadata.image import Endpoint, MetadataImage
from headrace.protocol.schemas.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from headrace.security.access import OPEN, Access
from headrace.security.acls import CLUSTER_NAME, CLUSTER_OPERATIONS, ResourceType

_NOT_REQUESTED = -(1 << 31)
BROKERS, CONTROLLERS = 1, 2
_KINDS = {BROKERS: "brokers", CONTROLLERS: "controllers"}


def check_endpoint_type(wanted: int, served: int) -> None:
    """Raise unless the request is for the kind of node that serves it."""
    if wanted not in _KINDS:
        raise UnsupportedEndpointType(
            f"there is no endpoint type {wanted}; there are brokers (1) and controllers (2)"
        )
    if wanted != served:
        raise MismatchedEndpointType(
            f"this endpoint describes {_KINDS[served]}, and the request is for {_KINDS[wanted]}"
        )


def describe_controllers(
    image: MetadataImage,
    request: DescribeClusterRequest,
    *,
    cluster_id: str,
    leader_id: int,
    listener: str,
    access: Access = OPEN,
) -> DescribeClusterResponse:
    """Return the registered controllers with their addresses for clients of a listener.

    `leader_id` is the active controller, or -1. A controller registers only from metadata.version
    15 on.
    """
    check_endpoint_type(request.endpoint_type, CONTROLLERS)
    nodes = [
        (node.id, endpoint)
        for node in image.controllers.values()
        if (endpoint := _endpoint(node.endpoints, listener)) is not None
    ]
    operations = _NOT_REQUESTED
    if request.include_cluster_authorized_operations:
        operations = access.operations_on(ResourceType.CLUSTER, CLUSTER_NAME, CLUSTER_OPERATIONS)
    return DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        cluster_authorized_operations=operations,
        cluster_id=cluster_id,
        controller_id=leader_id,
        brokers=[
            DescribeClusterBroker(broker_id=node_id, host=endpoint.host, port=endpoint.port)
            for node_id, endpoint in nodes
        ],
    )


def _endpoint(endpoints: tuple[Endpoint, ...], listener: str) -> Endpoint | None:
    return next((one for one in endpoints if one.name == listener), None)
