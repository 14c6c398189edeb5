"""EndTxn: API key 26.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message


class EndTxnRequest(Message):
    API_KEY = 26
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    transactional_id: Annotated[str, "0+"] = ""
    producer_id: Annotated[Int64, "0+"] = 0
    producer_epoch: Annotated[Int16, "0+"] = 0
    committed: Annotated[bool, "0+"] = False


class EndTxnResponse(Message):
    API_KEY = 26
    VERSIONS = range(6)
    FLEXIBLE_FROM = 3

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    producer_id: Annotated[Int64, "5+ ignorable"] = -1
    producer_epoch: Annotated[Int16, "5+ ignorable"] = -1
