"""A controller describes the quorum to tools that connect to it."""

import pytest

from headrace.controller.descriptions import describe_controllers
from headrace.errors import MismatchedEndpointType, UnsupportedEndpointType
from headrace.metadata.image import MetadataImage
from headrace.protocol.schemas.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from headrace.protocol.schemas.records.metadata import ControllerEndpoint, RegisterControllerRecord
from tests.builders.metadata_images import image_with, replayed


def quorum() -> MetadataImage:
    """Three controllers, the last one without the listener of the client."""
    listeners = {1: "CONTROLLER", 2: "CONTROLLER", 3: "OTHER"}
    return replayed(
        image_with(),
        [
            RegisterControllerRecord(
                controller_id=node,
                incarnation_id=bytes([node]) * 16,
                end_points=[ControllerEndpoint(name, f"host{node}", 9090 + node, 0)],
            )
            for node, name in listeners.items()
        ],
    )


def described(endpoint_type: int) -> DescribeClusterResponse:
    request = DescribeClusterRequest(endpoint_type=endpoint_type)
    return describe_controllers(
        quorum(), request, cluster_id="c" * 22, leader_id=2, listener="CONTROLLER"
    )


def test_controllers_are_described_with_their_addresses_and_the_active_one() -> None:
    response = described(2)
    assert (response.endpoint_type, response.controller_id) == (2, 2)
    assert response.cluster_id == "c" * 22
    nodes = [(one.broker_id, one.host, one.port) for one in response.brokers]
    assert nodes == [(1, "host1", 9091), (2, "host2", 9092)]


def test_a_controller_does_not_describe_brokers() -> None:
    with pytest.raises(MismatchedEndpointType):
        described(1)
    with pytest.raises(UnsupportedEndpointType):
        described(3)
