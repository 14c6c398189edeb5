"""AddPartitionsToTxn: API key 24.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure


class AddPartitionsToTxnTopic(Structure):
    name: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class AddPartitionsToTxnTransaction(Structure):
    transactional_id: Annotated[str, "4+"] = ""
    producer_id: Annotated[Int64, "4+"] = 0
    producer_epoch: Annotated[Int16, "4+"] = 0
    verify_only: Annotated[bool, "4+"] = False
    topics: Annotated[list[AddPartitionsToTxnTopic], "4+"] = []


class AddPartitionsToTxnRequest(Message):
    API_KEY = 24
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    transactions: Annotated[list[AddPartitionsToTxnTransaction], "4+"] = []
    v3_and_below_transactional_id: Annotated[str, "0-3"] = ""
    v3_and_below_producer_id: Annotated[Int64, "0-3"] = 0
    v3_and_below_producer_epoch: Annotated[Int16, "0-3"] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], "0-3"] = []


class AddPartitionsToTxnPartitionResult(Structure):
    partition_index: Annotated[Int32, "0+"] = 0
    partition_error_code: Annotated[Int16, "0+"] = 0


class AddPartitionsToTxnTopicResult(Structure):
    name: Annotated[str, "0+"] = ""
    results_by_partition: Annotated[list[AddPartitionsToTxnPartitionResult], "0+"] = []


class AddPartitionsToTxnResult(Structure):
    transactional_id: Annotated[str, "4+"] = ""
    topic_results: Annotated[list[AddPartitionsToTxnTopicResult], "4+"] = []


class AddPartitionsToTxnResponse(Message):
    API_KEY = 24
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "4+ ignorable"] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], "4+"] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], "0-3"] = []
