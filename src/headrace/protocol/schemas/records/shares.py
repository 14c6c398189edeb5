"""The keys and values of the records of `__share_group_state`, by type.

Written by `tools/schemas.py`; `protocol/message.py` explains the tables.
"""

from headrace.protocol.message import Message, Structure
from headrace.protocol.uuids import ZERO, Uuid


class ShareSnapshotKey(Message):
    API_KEY = 0
    VERSIONS = range(1)

    group_id: str = ""
    topic_id: Uuid = ZERO
    partition: int = 0

    FIELDS = """
        group_id   string  0
        topic_id   uuid    0
        partition  int32   0
    """


class ShareSnapshotValueStateBatch(Structure):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0

    FIELDS = """
        first_offset    int64  0+
        last_offset     int64  0+
        delivery_state  int8   0+
        delivery_count  int16  0+
    """


class ShareSnapshotValue(Message):
    API_KEY = 0
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    create_timestamp: int = 0
    write_timestamp: int = 0
    state_batches: list[ShareSnapshotValueStateBatch] = []

    FIELDS = """
        snapshot_epoch           int32                           0+
        state_epoch              int32                           0+
        leader_epoch             int32                           0+
        start_offset             int64                           0+
        delivery_complete_count  int32                           0+  tag=0
        create_timestamp         int64                           0+
        write_timestamp          int64                           0+
        state_batches            []ShareSnapshotValueStateBatch  0+
    """


class ShareUpdateKey(Message):
    API_KEY = 1
    VERSIONS = range(1)

    group_id: str = ""
    topic_id: Uuid = ZERO
    partition: int = 0

    FIELDS = """
        group_id   string  0
        topic_id   uuid    0
        partition  int32   0
    """


class ShareUpdateValueStateBatch(Structure):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0

    FIELDS = """
        first_offset    int64  0+
        last_offset     int64  0+
        delivery_state  int8   0+
        delivery_count  int16  0+
    """


class ShareUpdateValue(Message):
    API_KEY = 1
    VERSIONS = range(1)
    FLEXIBLE_FROM = 0

    snapshot_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[ShareUpdateValueStateBatch] = []

    FIELDS = """
        snapshot_epoch           int32                         0+
        leader_epoch             int32                         0+
        start_offset             int64                         0+
        delivery_complete_count  int32                         0+  tag=0
        state_batches            []ShareUpdateValueStateBatch  0+
    """
