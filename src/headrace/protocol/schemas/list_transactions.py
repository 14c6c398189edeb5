"""ListTransactions: API key 66.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message, Structure


class ListTransactionsRequest(Message):
    API_KEY = 66
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    state_filters: Annotated[list[str], "0+"] = []
    producer_id_filters: Annotated[list[Int64], "0+"] = []
    duration_filter: Annotated[Int64, "1+"] = -1
    transactional_id_pattern: Annotated[str | None, "2+"] = None


class TransactionState(Structure):
    transactional_id: Annotated[str, "0+"] = ""
    producer_id: Annotated[Int64, "0+"] = 0
    transaction_state: Annotated[str, "0+"] = ""


class ListTransactionsResponse(Message):
    API_KEY = 66
    VERSIONS = range(3)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    unknown_state_filters: Annotated[list[str], "0+"] = []
    transaction_states: Annotated[list[TransactionState], "0+"] = []
