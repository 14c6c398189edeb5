"""DescribeCluster v0-2: the nodes of the cluster, as clients of this listener reach them.

v1 adds the kind of node that the request is for; v2 can include fenced brokers.
"""

from headrace.broker.api.registry import Call, api
from headrace.broker.authorized_operations import NOT_REQUESTED, on_cluster
from headrace.broker.topics.topology import controller_for_clients, live_brokers
from headrace.controller.descriptions import BROKERS, check_endpoint_type
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.schemas.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from headrace.security.acls import Operation, ResourceType
from headrace.security.rights import Lacking, Right

_RIGHTS = (Right(Operation.DESCRIBE, ResourceType.CLUSTER, Lacking.SHOWS_NOTHING),)


@api(ApiKey.DESCRIBE_CLUSTER, versions=range(3), rights=_RIGHTS)
def describe_cluster(request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
    check_endpoint_type(request.endpoint_type, BROKERS)
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
        cluster_authorized_operations=on_cluster(call.access) if asked else NOT_REQUESTED,
    )
