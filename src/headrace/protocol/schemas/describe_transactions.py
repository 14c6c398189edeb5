"""DescribeTransactions: API key 65.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure


class DescribeTransactionsRequest(Message):
    API_KEY = 65
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    transactional_ids: Annotated[list[str], "0+"] = []


class TopicData(Structure):
    topic: Annotated[str, "0+"] = ""
    partitions: Annotated[list[Int32], "0+"] = []


class TransactionState(Structure):
    error_code: Annotated[Int16, "0+"] = 0
    transactional_id: Annotated[str, "0+"] = ""
    transaction_state: Annotated[str, "0+"] = ""
    transaction_timeout_ms: Annotated[Int32, "0+"] = 0
    transaction_start_time_ms: Annotated[Int64, "0+"] = 0
    producer_id: Annotated[Int64, "0+"] = 0
    producer_epoch: Annotated[Int16, "0+"] = 0
    topics: Annotated[list[TopicData], "0+"] = []


class DescribeTransactionsResponse(Message):
    API_KEY = 65
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    transaction_states: Annotated[list[TransactionState], "0+"] = []
