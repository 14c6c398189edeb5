"""DescribeCluster: API key 60.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class DescribeClusterRequest(Message):
    API_KEY = 60
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    include_cluster_authorized_operations: Annotated[bool, "0+"] = False
    endpoint_type: Annotated[Int8, "1+"] = 1
    include_fenced_brokers: Annotated[bool, "2+"] = False


class DescribeClusterBroker(Structure):
    broker_id: Annotated[Int32, "0+"] = 0
    host: Annotated[str, "0+"] = ""
    port: Annotated[Int32, "0+"] = 0
    rack: Annotated[str | None, "0+"] = None
    is_fenced: Annotated[bool, "2+"] = False


class DescribeClusterResponse(Message):
    API_KEY = 60
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = None
    endpoint_type: Annotated[Int8, "1+"] = 1
    cluster_id: Annotated[str, "0+"] = ""
    controller_id: Annotated[Int32, "0+"] = -1
    brokers: Annotated[list[DescribeClusterBroker], "0+"] = []
    cluster_authorized_operations: Annotated[Int32, "0+"] = -2147483648
