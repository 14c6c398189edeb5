"""Metadata: API key 3.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class MetadataRequestTopic(Structure):
    topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO
    name: Annotated[str | None, "0+ nullable=10+"] = ""


class MetadataRequest(Message):
    API_KEY = 3
    VERSIONS = range(14)
    FLEXIBLE_FROM = 9

    topics: Annotated[list[MetadataRequestTopic] | None, "0+ nullable=1+"] = []
    allow_auto_topic_creation: Annotated[bool, "4+"] = True
    include_cluster_authorized_operations: Annotated[bool, "8-10"] = False
    include_topic_authorized_operations: Annotated[bool, "8+"] = False


class MetadataResponseBroker(Structure):
    node_id: Annotated[Int32, "0+"] = 0
    host: Annotated[str, "0+"] = ""
    port: Annotated[Int32, "0+"] = 0
    rack: Annotated[str | None, "1+ ignorable"] = None


class MetadataResponsePartition(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    partition_index: Annotated[Int32, "0+"] = 0
    leader_id: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "7+ ignorable"] = -1
    replica_nodes: Annotated[list[Int32], "0+"] = []
    isr_nodes: Annotated[list[Int32], "0+"] = []
    offline_replicas: Annotated[list[Int32], "5+ ignorable"] = []


class MetadataResponseTopic(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    name: Annotated[str | None, "0+ nullable=12+"] = ""
    topic_id: Annotated[Uuid, "10+ ignorable"] = ZERO
    is_internal: Annotated[bool, "1+ ignorable"] = False
    partitions: Annotated[list[MetadataResponsePartition], "0+"] = []
    topic_authorized_operations: Annotated[Int32, "8+"] = -2147483648


class MetadataResponse(Message):
    API_KEY = 3
    VERSIONS = range(14)
    FLEXIBLE_FROM = 9

    throttle_time_ms: Annotated[Int32, "3+ ignorable"] = 0
    brokers: Annotated[list[MetadataResponseBroker], "0+"] = []
    cluster_id: Annotated[str | None, "2+ ignorable"] = None
    controller_id: Annotated[Int32, "1+ ignorable"] = -1
    topics: Annotated[list[MetadataResponseTopic], "0+"] = []
    cluster_authorized_operations: Annotated[Int32, "8-10"] = -2147483648
    error_code: Annotated[Int16, "13+ ignorable"] = 0
