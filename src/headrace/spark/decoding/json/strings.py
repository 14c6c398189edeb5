"""Compiled unescaping of JSON strings to UTF-8."""

from typing import Any

from headrace.spark.decoding.columns.memory import byte_at, compiled

BACKSLASH, NINE = 92, 57


@compiled
def hex_value(data: int, at: int) -> int:
    value = 0
    for place in range(at, at + 4):
        byte = byte_at(data, place)
        digit = byte - 48 if byte <= NINE else (byte | 32) - 87
        value = value * 16 + digit
    return value


@compiled
def put_utf8(code: int, out: Any, to: int) -> int:
    if code < 0x80:
        out[to] = code
        return to + 1
    if code < 0x800:
        out[to] = 0xC0 | (code >> 6)
        out[to + 1] = 0x80 | (code & 0x3F)
        return to + 2
    if code < 0x10000:
        out[to] = 0xE0 | (code >> 12)
        out[to + 1] = 0x80 | ((code >> 6) & 0x3F)
        out[to + 2] = 0x80 | (code & 0x3F)
        return to + 3
    out[to] = 0xF0 | (code >> 18)
    out[to + 1] = 0x80 | ((code >> 12) & 0x3F)
    out[to + 2] = 0x80 | ((code >> 6) & 0x3F)
    out[to + 3] = 0x80 | (code & 0x3F)
    return to + 4


@compiled
def plain_escape(byte: int) -> int:
    if byte == 98:
        return 8
    if byte == 102:
        return 12
    if byte == 110:
        return 10
    if byte == 114:
        return 13
    if byte == 116:
        return 9
    return byte


@compiled
def is_hex_escape(data: int, at: int, end: int) -> bool:
    return at + 6 <= end and byte_at(data, at) == BACKSLASH and byte_at(data, at + 1) == 117


@compiled
def unescape(data: int, at: int, end: int, out: Any, to: int) -> int:
    """Write a checked string unescaped; half a surrogate pair becomes the replacement character."""
    while at < end:
        byte = byte_at(data, at)
        if byte != BACKSLASH:
            out[to] = byte
            to += 1
            at += 1
            continue
        byte = byte_at(data, at + 1)
        at += 2
        if byte != 117:
            out[to] = plain_escape(byte)
            to += 1
            continue
        code = hex_value(data, at)
        at += 4
        if 0xD800 <= code < 0xE000:
            low = 0
            if code < 0xDC00 and is_hex_escape(data, at, end):
                low = hex_value(data, at + 2)
            if 0xDC00 <= low < 0xE000:
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                at += 6
            else:
                code = 0xFFFD
        to = put_utf8(code, out, to)
    return to
