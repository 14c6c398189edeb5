"""InitProducerId: API key 22.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message


class InitProducerIdRequest(Message):
    API_KEY = 22
    VERSIONS = range(6)
    FLEXIBLE_FROM = 2

    transactional_id: Annotated[str | None, "0+"] = ""
    transaction_timeout_ms: Annotated[Int32, "0+"] = 0
    producer_id: Annotated[Int64, "3+"] = -1
    producer_epoch: Annotated[Int16, "3+"] = -1


class InitProducerIdResponse(Message):
    API_KEY = 22
    VERSIONS = range(6)
    FLEXIBLE_FROM = 2

    throttle_time_ms: Annotated[Int32, "0+ ignorable"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    producer_id: Annotated[Int64, "0+"] = -1
    producer_epoch: Annotated[Int16, "0+"] = 0
