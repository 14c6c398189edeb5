"""Confluent's wire format: a zero byte, a schema's id in four bytes, then the payload proper."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.spark.decoding.columns.spans import STRING, VOID, Spans, spans_of

HEADER_BYTES = 5
UNFRAMED = -1
NO_PAYLOAD = -2


@dataclass(frozen=True, slots=True)
class Framed:
    """Payloads without their headers, and the schema's id of each.

    The id is UNFRAMED where there is no header, and NO_PAYLOAD where there is no payload.
    """

    ids: Any
    bodies: Any


def unframe(payloads: Any) -> Framed:
    from headrace.spark.decoding.columns.scalars import bytes_column

    spans = spans_of(payloads)
    is_here = spans.kinds != VOID
    is_framed = is_here & (spans.ends - spans.starts >= HEADER_BYTES)
    starts = np.where(is_framed, spans.starts, 0)
    if len(spans.data) < HEADER_BYTES:
        is_framed[:] = False
        ids = np.zeros(len(spans), np.int64)
    else:
        is_framed &= spans.data[starts] == 0
        ids = np.zeros(len(spans), np.int64)
        for place in range(1, HEADER_BYTES):
            ids = ids << 8 | spans.data[starts + place]
    ids = np.where(is_framed, ids, np.where(is_here, UNFRAMED, NO_PAYLOAD))
    bodies = Spans(
        spans.data,
        np.where(is_framed, spans.starts + HEADER_BYTES, 0).astype(np.int32),
        np.where(is_framed, spans.ends, 0).astype(np.int32),
        np.where(is_framed, STRING, VOID).astype(np.uint8),
        spans.rows,
    )
    return Framed(ids, bytes_column(bodies, pa.binary()))


def null_payloads(count: int) -> Any:
    return pa.nulls(count, pa.binary())
