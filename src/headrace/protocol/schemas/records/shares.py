"""The keys and values of the records of `__share_group_state`, by type.

Written by `tools/schemas.py`; `protocol/message.py` explains the annotations.
"""

from typing import Annotated

from headrace.protocol.message import Int8, Int16, Int32, Int64, Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class ShareSnapshotKey(Message):
    API_KEY = 0
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    topic_id: Annotated[Uuid, "0"] = ZERO
    partition: Annotated[Int32, "0"] = 0


class ShareSnapshotValueStateBatch(Structure):
    first_offset: Annotated[Int64, "0+"] = 0
    last_offset: Annotated[Int64, "0+"] = 0
    delivery_state: Annotated[Int8, "0+"] = 0
    delivery_count: Annotated[Int16, "0+"] = 0


class ShareSnapshotValue(Message):
    API_KEY = 0
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    snapshot_epoch: Annotated[Int32, "0+"] = 0
    state_epoch: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0
    start_offset: Annotated[Int64, "0+"] = 0
    delivery_complete_count: Annotated[Int32, "0+ tag=0"] = -1
    create_timestamp: Annotated[Int64, "0+"] = 0
    write_timestamp: Annotated[Int64, "0+"] = 0
    state_batches: Annotated[list[ShareSnapshotValueStateBatch], "0+"] = []


class ShareUpdateKey(Message):
    API_KEY = 1
    VERSIONS = range(1)

    group_id: Annotated[str, "0"] = ""
    topic_id: Annotated[Uuid, "0"] = ZERO
    partition: Annotated[Int32, "0"] = 0


class ShareUpdateValueStateBatch(Structure):
    first_offset: Annotated[Int64, "0+"] = 0
    last_offset: Annotated[Int64, "0+"] = 0
    delivery_state: Annotated[Int8, "0+"] = 0
    delivery_count: Annotated[Int16, "0+"] = 0


class ShareUpdateValue(Message):
    API_KEY = 1
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    snapshot_epoch: Annotated[Int32, "0+"] = 0
    leader_epoch: Annotated[Int32, "0+"] = 0
    start_offset: Annotated[Int64, "0+"] = 0
    delivery_complete_count: Annotated[Int32, "0+ tag=0"] = -1
    state_batches: Annotated[list[ShareUpdateValueStateBatch], "0+"] = []
