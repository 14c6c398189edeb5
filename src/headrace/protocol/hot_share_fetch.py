"""The ShareFetch response by hand: like that of Fetch, with the records left in their files.

`tests/unit/protocol/test_hot_share_fetch.py` holds this against the generated codec.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Generic, NamedTuple

from headrace.protocol.hot_fetch import AnswerParts, NodeAddress, Slice
from headrace.protocol.primitives import append_uvarint

_TOP = Struct(">iiBih")  # Frame size, correlation id, header's tags, throttle time, error.
_I16 = Struct(">h")
_I32 = Struct(">i")
_PARTITION = Struct(">ih")
_LEADER = Struct(">iib")  # Leader, its epoch, tagged fields.
_ACQUIRED = Struct(">qqhb")  # First and last offset, delivery count, tagged fields.


class SharedRecords(NamedTuple, Generic[Slice]):
    """The answer for one partition: its fetch, and its acknowledgements."""

    partition: int
    error_code: int = 0
    error_message: str | None = None
    acknowledge_error_code: int = 0
    acknowledge_error_message: str | None = None
    leader_id: int = 0
    leader_epoch: int = 0
    records: "bytes | Slice | None" = None
    acquired: Sequence[tuple[int, int, int]] = ()


def write_share_fetch(
    correlation_id: int,
    acquisition_lock_timeout_ms: int,
    topics: "Sequence[tuple[bytes, Sequence[SharedRecords[Slice]]]]",
    *,
    error_code: int = 0,
    error_message: str | None = None,
    nodes: Sequence[NodeAddress] = (),
    throttle_ms: int = 0,
) -> "list[bytearray | Slice]":
    """The framed answer as parts, the same in v1 and v2; topics are named by their id."""
    answer: AnswerParts[Slice] = AnswerParts()
    out = answer.out
    out += _TOP.pack(0, correlation_id, 0, throttle_ms, error_code)
    _append_text(out, error_message)
    out += _I32.pack(acquisition_lock_timeout_ms)
    append_uvarint(out, len(topics) + 1)
    for topic_id, partitions in topics:
        answer.out += topic_id
        append_uvarint(answer.out, len(partitions) + 1)
        for partition in partitions:
            _append_partition(answer, partition)
        answer.out += b"\0"
    _append_nodes(answer.out, nodes)
    answer.out += b"\0"
    return answer.finish()


def _append_nodes(out: bytearray, nodes: Sequence[NodeAddress]) -> None:
    append_uvarint(out, len(nodes) + 1)
    for node_id, host, port, rack in nodes:
        out += _I32.pack(node_id)
        _append_text(out, host)
        out += _I32.pack(port)
        _append_text(out, rack)
        out += b"\0"


def _append_partition(answer: AnswerParts[Slice], partition: SharedRecords[Slice]) -> None:
    out = answer.out
    out += _PARTITION.pack(partition.partition, partition.error_code)
    _append_text(out, partition.error_message)
    out += _I16.pack(partition.acknowledge_error_code)
    _append_text(out, partition.acknowledge_error_message)
    out += _LEADER.pack(partition.leader_id, partition.leader_epoch, 0)
    if partition.records is None:
        out += b"\1"  # Kafka sends zero bytes, and some clients reject null here.
    else:
        answer.add_records(partition.records)
    out = answer.out
    append_uvarint(out, len(partition.acquired) + 1)
    for first, last, delivery_count in partition.acquired:
        out += _ACQUIRED.pack(first, last, delivery_count, 0)
    out += b"\0"


def _append_text(out: bytearray, text: str | None) -> None:
    if text is None:
        out += b"\0"
    else:
        encoded = text.encode()
        append_uvarint(out, len(encoded) + 1)
        out += encoded
