"""Statistics of a file's columns for Delta's log, by which readers skip files.

A wrong bound hides rows; a missing one only costs a read. So strings are cut to a valid bound,
times are rounded outwards to Delta's milliseconds, and columns with NaN have no bounds, because
readers disagree on its order.
"""

import datetime as dt
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.schemas import leaves

_COLUMNS_MAX = 32
"""Delta's own default for how many columns have statistics."""
_TEXT_MAX = 32
_LAST_CHARACTER = "\U0010ffff"


class Statistics:
    """Combines a file's Parquet footer with the columns that have NaN into Delta's JSON."""

    def __init__(self, schema: pa.Schema) -> None:
        wanted = list(leaves(schema))[:_COLUMNS_MAX]
        if any("." in name for path, _ in wanted for name in path):
            # Parquet joins the names of structs by dots, so such names are ambiguous.
            wanted = []
        self._types = {".".join(path): of for path, of in wanted}
        self._paths = {".".join(path): path for path, _ in wanted}
        self._floats = [f.name for f in schema if pa.types.is_floating(f.type)]
        self._has_nan: set[str] = {
            ".".join(path) for path, of in wanted if len(path) > 1 and pa.types.is_floating(of)
        }
        """Columns without bounds; floats inside structs are not examined."""

    def observe(self, rows: Any) -> None:
        for name in self._floats:
            if name not in self._has_nan and pc.any(pc.is_nan(rows.column(name))).as_py():
                self._has_nan.add(name)

    def of(self, footer: Any) -> str:
        """Return Delta's statistics of the file with this Parquet footer."""
        least: dict[str, Any] = {}
        most: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        for name, columns in _columns(footer):
            if name not in self._types or any(one.statistics is None for one in columns):
                continue
            found = [one.statistics for one in columns]
            if all(one.has_null_count for one in found):
                _put(nulls, self._paths[name], sum(one.null_count for one in found))
            filled = [
                one
                for one, column in zip(found, columns, strict=True)
                if not (one.has_null_count and one.null_count == column.num_values)
            ]
            if name in self._has_nan or not filled or not all(one.has_min_max for one in filled):
                continue
            low, high = _bounds(filled, self._types[name])
            if low is not None and high is not None:
                _put(least, self._paths[name], low)
                _put(most, self._paths[name], high)
        document = {
            "numRecords": footer.num_rows,
            "minValues": least,
            "maxValues": most,
            "nullCount": nulls,
        }
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _columns(footer: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield each leaf column with its chunks in all row groups."""
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    for index in range(footer.num_columns if groups else 0):
        chunks = [group.column(index) for group in groups]
        yield chunks[0].path_in_schema, chunks


def _put(into: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        into = into.setdefault(name, {})
    into[path[-1]] = value


def _bounds(found: list[Any], of: pa.DataType) -> tuple[Any, Any]:
    try:
        least, most = min(one.min for one in found), max(one.max for one in found)
    except (OverflowError, ValueError):
        # A time beyond Python's calendar.
        return None, None
    return _lower_bound(least, of), _upper_bound(most, of)


def _lower_bound(value: Any, of: pa.DataType) -> Any:
    if pa.types.is_timestamp(of):
        return _time_text(value)
    if pa.types.is_string(of):
        return value[:_TEXT_MAX]
    return _plain(value, of)


def _upper_bound(value: Any, of: pa.DataType) -> Any:
    if pa.types.is_timestamp(of):
        return _time_text(value, up=True)
    if pa.types.is_string(of):
        return value if len(value) <= _TEXT_MAX else value[:_TEXT_MAX] + _LAST_CHARACTER
    return _plain(value, of)


def _plain(value: Any, of: pa.DataType) -> Any:
    """Return bounds of numbers and dates; readers disagree on those of other types."""
    if pa.types.is_integer(of) or (pa.types.is_floating(of) and abs(value) != float("inf")):
        return value
    if pa.types.is_date(of):
        return value.isoformat()
    return None


def _time_text(value: dt.datetime, *, up: bool = False) -> str | None:
    rest = value.microsecond % 1000
    try:
        rounded = value - dt.timedelta(microseconds=rest)
        if up and rest:
            rounded += dt.timedelta(milliseconds=1)
    except OverflowError:
        return None
    text = rounded.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z" if value.tzinfo else text
