"""AllocateProducerIds: API key 67.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int16, Int32, Int64, Message


class AllocateProducerIdsRequest(Message):
    API_KEY = 67
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    broker_id: Annotated[Int32, "0+"] = 0
    broker_epoch: Annotated[Int64, "0+"] = -1


class AllocateProducerIdsResponse(Message):
    API_KEY = 67
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    throttle_time_ms: Annotated[Int32, "0+"] = 0
    error_code: Annotated[Int16, "0+"] = 0
    producer_id_start: Annotated[Int64, "0+"] = 0
    producer_id_len: Annotated[Int32, "0+"] = 0
