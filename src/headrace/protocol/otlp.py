"""OpenTelemetry's metrics as clients push them (KIP-714): a small reader of protobuf.

`series_in` reads a MetricsData message into plain series. The bytes come from clients: unknown
fields are skipped, lengths are checked against the size of the message, and the number of series
is bounded.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import islice
from struct import Struct
from typing import NamedTuple, TypeAlias

from headrace.protocol.primitives import DecodeError

_FIXED64, _FIXED32 = Struct("<q"), Struct("<i")
_DOUBLE = Struct("<d")
_VARINT_BYTES_MAX = 10
_UINT64_MAX = (1 << 64) - 1
_FIELDS_MAX = 100_000
_ATTRIBUTES_MAX = 16

Attributes: TypeAlias = tuple[tuple[str, str], ...]
_Value: TypeAlias = int | bytes


class SeriesKind(Enum):
    """The kind of a figure: a counter, or a gauge that may go down."""

    GAUGE = "gauge"
    COUNTER = "counter"


class Series(NamedTuple):
    """One figure of a client; a histogram has two, its count and its sum."""

    name: str
    kind: SeriesKind
    attributes: Attributes
    value: float


def series_in(data: bytes, count_max: int) -> list[Series]:
    """Return the series of a MetricsData message, up to a limit; raise `DecodeError` if invalid."""
    return list(islice(_Reader().series(data), count_max))


class _Reader:
    """Reads one message; the number of fields is bounded."""

    def __init__(self) -> None:
        self._fields_left = _FIELDS_MAX

    def series(self, data: bytes) -> Iterator[Series]:
        for resource_metrics in self._messages(data, 1):
            resource = next(self._messages(resource_metrics, 1), b"")
            common = self._attributes(resource, 1)
            for scope_metrics in self._messages(resource_metrics, 2):
                for metric in self._messages(scope_metrics, 2):
                    yield from self._of_metric(metric, common)

    def _of_metric(self, metric: bytes, common: Attributes) -> Iterator[Series]:
        name = ""
        for number, value in self._fields(metric):
            if number == 1:
                name = _text(value)
            elif number == 5:
                yield from self._points(name, SeriesKind.GAUGE, _bytes(value), common)
            elif number == 7:
                total = _bytes(value)
                is_monotonic = any(number == 3 and flag for number, flag in self._fields(total))
                kind = SeriesKind.COUNTER if is_monotonic else SeriesKind.GAUGE
                yield from self._points(name, kind, total, common)
            elif number in (9, 10):
                yield from self._histograms(name, _bytes(value), common)

    def _points(
        self, name: str, kind: SeriesKind, data: bytes, common: Attributes
    ) -> Iterator[Series]:
        for point in self._messages(data, 1):
            for number, value in self._fields(point):
                if number in (4, 6):
                    figure = _double(value) if number == 4 else float(_number(value))
                    yield Series(name, kind, common + self._attributes(point, 7), figure)

    def _histograms(self, name: str, data: bytes, common: Attributes) -> Iterator[Series]:
        kind = SeriesKind.COUNTER
        for point in self._messages(data, 1):
            # Attributes are field 9 of a histogram, and field 1 of an exponential histogram.
            attributes = common + self._attributes(point, 9) + self._attributes(point, 1)
            for number, value in self._fields(point):
                if number == 4:
                    yield Series(f"{name}.count", kind, attributes, float(_number(value)))
                elif number == 5:
                    yield Series(f"{name}.sum", kind, attributes, _double(value))

    def _attributes(self, data: bytes, field: int) -> Attributes:
        """Keys with scalar values; lists and maps do not fit a label."""
        found = []
        for pair in islice(self._messages(data, field), _ATTRIBUTES_MAX):
            key, text = "", None
            for number, value in self._fields(pair):
                if number == 1:
                    key = _text(value)
                elif number == 2:
                    text = self._simple(_bytes(value))
            if key and text is not None:
                found.append((key, text))
        return tuple(found)

    def _simple(self, data: bytes) -> str | None:
        for number, value in self._fields(data):
            match number:
                case 1:
                    return _text(value)
                case 2:
                    return "true" if value else "false"
                case 3:
                    return str(_number(value))
                case 4:
                    return repr(_double(value))
        return None

    def _messages(self, data: bytes, wanted: int) -> Iterator[bytes]:
        for number, value in self._fields(data):
            if number == wanted and isinstance(value, bytes):
                yield value

    def _fields(self, data: bytes) -> Iterator[tuple[int, _Value]]:
        """The numbers and values of a message's fields, in the order of the wire."""
        position, end = 0, len(data)
        while position < end:
            self._fields_left -= 1
            if self._fields_left < 0:
                raise DecodeError(f"the metrics have more than {_FIELDS_MAX} fields")
            key, position = _varint(data, position)
            match key & 7:
                case 0:
                    value, position = _varint(data, position)
                    yield key >> 3, value
                case 1:
                    yield key >> 3, _fixed(_FIXED64, data, position)
                    position += 8
                case 2:
                    size, position = _varint(data, position)
                    if size > end - position:
                        raise DecodeError("a field of the metrics is longer than the metrics")
                    yield key >> 3, data[position : position + size]
                    position += size
                case 5:
                    yield key >> 3, _fixed(_FIXED32, data, position)
                    position += 4
                case unknown:
                    raise DecodeError(f"wire type {unknown} in the metrics is not known")


def _fixed(kind: Struct, data: bytes, position: int) -> int:
    if len(data) - position < kind.size:
        raise DecodeError("the metrics end in the middle of a number")
    value: int = kind.unpack_from(data, position)[0]
    return value


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for place in range(_VARINT_BYTES_MAX):
        if position + place >= len(data):
            break
        byte = data[position + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & _UINT64_MAX, position + place + 1
    raise DecodeError("the metrics hold a number without an end")


def _bytes(value: _Value) -> bytes:
    if isinstance(value, bytes):
        return value
    raise DecodeError("the metrics hold a number where a message belongs")


def _number(value: _Value) -> int:
    if isinstance(value, int):
        return value if value < 1 << 63 else value - (1 << 64)
    raise DecodeError("the metrics hold a message where a number belongs")


def _double(value: _Value) -> float:
    figure: float = _DOUBLE.unpack(_FIXED64.pack(_number(value)))[0]
    return figure


def _text(value: _Value) -> str:
    return _bytes(value).decode(errors="replace")
