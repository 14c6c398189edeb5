"""Columns of scalar types from spans: one compiled pass per column into Arrow's buffers."""

import base64
import binascii
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.spark.decoding.columns import number_texts, time_texts
from headrace.spark.decoding.columns.failures import UNFIT, Failures
from headrace.spark.decoding.columns.spans import FLOAT, INTEGER, STRING, Spans, bitmap
from headrace.spark.decoding.columns.string_texts import copy_strings, string_lengths, to_booleans

NOT_FINITE = {
    b"NaN": float("nan"),
    b"Infinity": float("inf"),
    b"+Infinity": float("inf"),
    b"INF": float("inf"),
    b"+INF": float("inf"),
    b"-Infinity": float("-inf"),
    b"-INF": float("-inf"),
}
"""Strings that Spark reads as doubles, because JSON has no such numbers."""

_WORDS = np.dtype((np.int64, 2))
"""A number of 128 bits: two signed words, the lower first."""

Builder = Callable[[Spans, Any, int, Failures], Any]


def scalar_column(spans: Spans, type_: Any, column: int, failures: Failures) -> Any:
    """Build an Arrow array; values that do not fit are null and recorded as failures."""
    return builder_of(type_)(spans, type_, column, failures)


def builder_of(type_: Any) -> Builder:
    if pa.types.is_string(type_):
        return strings
    if pa.types.is_integer(type_):
        return integers
    if pa.types.is_floating(type_):
        return doubles
    if pa.types.is_timestamp(type_):
        return timestamps
    if pa.types.is_boolean(type_):
        return booleans
    if pa.types.is_date32(type_):
        return dates
    if pa.types.is_decimal128(type_):
        return decimals
    assert pa.types.is_binary(type_), type_
    return base64_texts


def _converted(
    convert: Callable[..., None],
    kind: Any,
    spans: Spans,
    column: int,
    failures: Failures,
    *settings: Any,
) -> tuple[Any, Any]:
    """Return the values and their validity, as a compiled converter fills them."""
    values, is_valid = np.zeros(len(spans), kind), np.zeros(len(spans), np.uint8)
    convert(spans.arrays, values, is_valid, (*failures.arrays, column), *settings)
    return values, is_valid


def integers(spans: Spans, type_: Any, column: int, failures: Failures) -> Any:
    limits = np.iinfo(type_.to_pandas_dtype())
    values, is_valid = _converted(
        number_texts.to_integers, np.int64, spans, column, failures, limits.min, limits.max
    )
    return fixed(type_, values.astype(type_.to_pandas_dtype(), copy=False), is_valid)


def doubles(spans: Spans, type_: Any, column: int, failures: Failures) -> Any:
    values, is_valid = _converted(number_texts.to_doubles, np.float64, spans, column, failures)
    for index in np.flatnonzero(is_valid == number_texts.HARD):
        text = spans.text(index)
        value = NOT_FINITE.get(text) if spans.kinds[index] == STRING else float(text)
        if value is None:
            is_valid[index] = 0
            failures.note(UNFIT, spans, index, column)
        else:
            values[index], is_valid[index] = value, 1
    with np.errstate(over="ignore"):  # As in Spark, values beyond the range of FLOAT are infinite.
        return fixed(type_, values.astype(type_.to_pandas_dtype(), copy=False), is_valid)


def decimals(spans: Spans, type_: Any, column: int, failures: Failures) -> Any:
    limit = 10 ** min(type_.precision, number_texts.SMALL_DIGITS) - 1
    words, is_valid = _converted(
        number_texts.to_decimals, _WORDS, spans, column, failures, type_.scale, limit
    )
    for index in np.flatnonzero(is_valid == number_texts.HARD):
        value = unscaled(spans.text(index), type_.precision, type_.scale)
        if value is None:
            is_valid[index] = 0
            failures.note(UNFIT, spans, index, column)
        else:
            words[index], is_valid[index] = halves(value), 1
    return fixed(type_, words, is_valid)


def unscaled(text: bytes, precision: int, scale: int) -> int | None:
    """Return the digits of a decimal, rounded half up; None if they are too many."""
    exact = decimal.Context(prec=len(text) + 100, rounding=decimal.ROUND_HALF_UP)
    try:
        value = decimal.Decimal(text.decode("ascii"))
        # Exponents are bounded before they are expanded to zeros.
        if not value.is_finite() or value.adjusted() > precision:
            return None
        if value.adjusted() < -precision - 1:
            return 0
        rounded = value.quantize(decimal.Decimal(1).scaleb(-scale), context=exact)
    except (decimal.InvalidOperation, UnicodeDecodeError):
        return None
    found = int(rounded.scaleb(scale, context=exact))
    return found if unscaled_fits(found, precision) else None


def halves(value: int) -> tuple[int, int]:
    """Split a number of 128 bits into two signed ones of 64, the lower first."""
    low = value & 0xFFFF_FFFF_FFFF_FFFF
    return (low - (1 << 64) if low >> 63 else low), value >> 64


def unscaled_fits(value: int, precision: int) -> bool:
    return abs(value) < int(10**precision)


def timestamps(spans: Spans, type_: Any, column: int, failures: Failures) -> Any:
    has_zone = type_.tz is not None
    convert = time_texts.to_timestamps
    return fixed(type_, *_converted(convert, np.int64, spans, column, failures, has_zone))


def dates(spans: Spans, type_: Any, column: int, failures: Failures) -> Any:
    return fixed(type_, *_converted(time_texts.to_dates, np.int32, spans, column, failures))


def booleans(spans: Spans, type_: Any, column: int, failures: Failures) -> Any:
    values, is_valid = _converted(to_booleans, np.uint8, spans, column, failures)
    return fixed(type_, np.packbits(values, bitorder="little"), is_valid)


def strings(spans: Spans, type_: Any, column: int, failures: Failures) -> Any:
    """Return any value as text: numbers and objects as written."""
    return bytes_column(spans, type_)


def bytes_column(spans: Spans, type_: Any) -> Any:
    """Return the unescaped bytes of each value, as strings or binary values."""
    offsets = np.empty(len(spans) + 1, np.int32)
    is_valid = np.empty(len(spans), np.uint8)
    size = string_lengths(spans.starts, spans.ends, spans.kinds, offsets, is_valid)
    out = np.empty(size, np.uint8)
    copy_strings(spans.address, spans.starts, spans.ends, spans.kinds, offsets, out)
    buffers = [bitmap(is_valid), pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(type_, len(spans), buffers)


def base64_texts(spans: Spans, type_: Any, column: int, failures: Failures) -> Any:
    texts = strings(spans, pa.string(), column, failures).to_pylist()
    values: list[bytes | None] = [None] * len(texts)
    for index, text in enumerate(texts):
        if text is None:
            continue
        try:
            if spans.kinds[index] in (INTEGER, FLOAT):
                raise ValueError
            values[index] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            failures.note(UNFIT, spans, index, column)
    return pa.array(values, type_)


def fixed(type_: Any, values: Any, is_valid: Any) -> Any:
    return pa.Array.from_buffers(type_, len(is_valid), [bitmap(is_valid), pa.py_buffer(values)])
