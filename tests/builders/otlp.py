"""OTLP metrics, written field by field: what clients push, made without our reader's help."""

import struct

Attributes = dict[str, str]


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def fixed64(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 1) + body


def attributes(number: int, pairs: Attributes) -> bytes:
    return b"".join(
        message(number, message(1, key.encode()) + message(2, message(1, value.encode())))
        for key, value in pairs.items()
    )


def gauge(name: str, value: float, **pairs: str) -> bytes:
    point = fixed64(3, bytes(8)) + fixed64(4, struct.pack("<d", value)) + attributes(7, pairs)
    return message(1, name.encode()) + message(5, message(1, point))


def total(name: str, value: int, **pairs: str) -> bytes:
    """A sum that only grows."""
    point = fixed64(6, struct.pack("<q", value)) + attributes(7, pairs)
    return message(1, name.encode()) + message(7, message(1, point) + b"\x10\x02\x18\x01")


def histogram(name: str, count: int, value: float) -> bytes:
    point = fixed64(4, struct.pack("<q", count)) + fixed64(5, struct.pack("<d", value))
    return message(1, name.encode()) + message(9, message(1, point))


def metrics_data(*metrics: bytes, **resource: str) -> bytes:
    scope = b"".join(message(2, metric) for metric in metrics)
    return message(1, message(1, attributes(1, resource)) + message(2, scope))
