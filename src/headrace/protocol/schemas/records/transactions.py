"""The keys and values of the records of `__transaction_state`, by type.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure


class TransactionLogKey(Message):
    API_KEY = 0
    VERSIONS = range(1)

    transactional_id: str = ""

    FIELDS = """
        transactional_id  string  0
    """


class PartitionsSchema(Structure):
    topic: str = ""
    partition_ids: list[int] = []

    FIELDS = """
        topic          string   0+
        partition_ids  []int32  0+
    """


class TransactionLogValue(Message):
    API_KEY = 0
    VERSIONS = range(2)
    FLEXIBLE_FROM = 1

    producer_id: int = 0
    previous_producer_id: int = -1
    next_producer_id: int = -1
    producer_epoch: int = 0
    next_producer_epoch: int = -1
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: int = 0
    transaction_start_timestamp_ms: int = 0
    client_transaction_version: int = 0

    FIELDS = """
        producer_id                           int64               0+
        previous_producer_id                  int64               1+  tag=0
        next_producer_id                      int64               1+  tag=1
        producer_epoch                        int16               0+
        next_producer_epoch                   int16               1+  tag=3
        transaction_timeout_ms                int32               0+
        transaction_status                    int8                0+
        transaction_partitions                []PartitionsSchema  0+  nullable
        transaction_last_update_timestamp_ms  int64               0+
        transaction_start_timestamp_ms        int64               0+
        client_transaction_version            int16               1+  tag=2
    """
