"""DescribeCluster v0-2: the nodes of the cluster, as clients of this listener reach them.

v1 lets the client say which kind of node it means to ask; v2 can list fenced brokers too.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.authorized_operations import NOT_ASKED, ON_CLUSTER
from headrace.broker.topics.topology import controller_for_clients, live_brokers
from headrace.errors import MismatchedEndpointType, UnsupportedEndpointType
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKER_ENDPOINT, _CONTROLLER_ENDPOINT = 1, 2


@api(ApiKey.DESCRIBE_CLUSTER, versions=range(3))
def describe_cluster(request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
    _check_endpoint_type(request.endpoint_type)
    broker, image = call.broker, call.broker.image
    nodes = live_brokers(image, call.listener, include_fenced=request.include_fenced_brokers)
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=controller_for_clients(image, broker.node_id),
        brokers=[
            DescribeClusterBroker(
                broker_id=node.id,
                host=endpoint.host,
                port=endpoint.port,
                rack=node.rack,
                is_fenced=node.fenced,
            )
            for node, endpoint in nodes
        ],
        cluster_authorized_operations=ON_CLUSTER if asked else NOT_ASKED,
    )


def _check_endpoint_type(endpoint_type: int) -> None:
    if endpoint_type == _CONTROLLER_ENDPOINT:
        raise MismatchedEndpointType(
            "this is a broker's endpoint, and the request is for a controller's"
        )
    if endpoint_type != _BROKER_ENDPOINT:
        raise UnsupportedEndpointType(
            f"there is no endpoint type {endpoint_type}; there are brokers (1) and controllers (2)"
        )
