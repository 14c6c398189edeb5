"""The keys and values of the records of `__transaction_state`, by type.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Int64, Message, Structure


class TransactionLogKey(Message):
    API_KEY = 0
    VERSIONS = range(1)

    transactional_id: Annotated[str, "0"] = ""


class PartitionsSchema(Structure):
    topic: Annotated[str, "0+"] = ""
    partition_ids: Annotated[list[Int32], "0+"] = []


class TransactionLogValue(Message):
    API_KEY = 0
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    producer_id: Annotated[Int64, "0+"] = 0
    previous_producer_id: Annotated[Int64, "1+ tag=0"] = -1
    next_producer_id: Annotated[Int64, "1+ tag=1"] = -1
    producer_epoch: Annotated[Int16, "0+"] = 0
    next_producer_epoch: Annotated[Int16, "1+ tag=3"] = -1
    transaction_timeout_ms: Annotated[Int32, "0+"] = 0
    transaction_status: Annotated[Int8, "0+"] = 0
    transaction_partitions: Annotated[list[PartitionsSchema] | None, "0+"] = []
    transaction_last_update_timestamp_ms: Annotated[Int64, "0+"] = 0
    transaction_start_timestamp_ms: Annotated[Int64, "0+"] = 0
    client_transaction_version: Annotated[Int16, "1+ tag=2"] = 0
