"""ElectLeaders: API key 43.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Message, Structure


class TopicPartitions(Structure):
    topic: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class ElectLeadersRequest(Message):
    API_KEY = 43
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    election_type: Annotated[Int8, "1+"] = 0
    topic_partitions: Annotated[list[TopicPartitions] | None, "0+"] = []
    timeout_ms: Annotated[Int32, "0+"] = 60000


class PartitionResult(Structure):
    partition_id: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    error_message: Annotated[str | None, "0+"] = ""


class ReplicaElectionResult(Structure):
    topic: Annotated[str, "0+"] = ""
    partition_result: Annotated[list[PartitionResult], "0+"] = []


class ElectLeadersResponse(Message):
    API_KEY = 43
    VERSIONS = range(3)
    FLEXIBLE_FROM = 2

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "1+"] = 0
    replica_election_results: Annotated[list[ReplicaElectionResult], "0+"] = []
