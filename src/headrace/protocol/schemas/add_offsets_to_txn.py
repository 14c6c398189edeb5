"""AddOffsetsToTxn: API key 25.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message


class AddOffsetsToTxnRequest(Message):
    API_KEY = 25
    VERSIONS = range(5)
    FLEXIBLE_FROM = 3

    transactional_id: Annotated[str, "0+"] = ""
    producer_id: Annotated[Int64, "0+"] = 0
    producer_epoch: Annotated[Int16, "0+"] = 0
    group_id: Annotated[str, "0+"] = ""


class AddOffsetsToTxnResponse(Message):
    API_KEY = 25
    VERSIONS = range(5)
    FLEXIBLE_FROM = 3

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
