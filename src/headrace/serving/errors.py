"""Errors of queries, and the translation of DuckDB's errors."""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any, Self

import duckdb

from headrace.http.errors import (
    BadRequest,
    ContentTooLarge,
    Forbidden,
    HttpError,
    NotFound,
    TookTooLong,
    Unavailable,
)

_LINE = re.compile(r"^LINE (\d+): (.*)\n( *)\^", re.MULTILINE)
_UNFILTERED = re.compile(r"no kernel matching input types \(.*(string|binary)_view")


class InvalidQuery(BadRequest):
    """SQL that DuckDB rejects."""

    error = "invalid_query"


class UnfilteredTexts(InvalidQuery):
    """Arrow cannot filter the texts of a file; the query is retried without that filter."""


class NotReadOnly(Forbidden):
    """A statement that does more than read served tables."""

    error = "not_read_only"


class TableNotFound(NotFound):
    """A table that does not exist or is not served."""

    error = "table_not_found"

    def __init__(self, name: str, known: Iterable[str], closed_zones: Collection[str] = ()) -> None:
        zone, separator, _ = name.partition(".")
        if separator and zone.lower() in closed_zones:
            super().__init__(
                f"there is no table {name} here, as zone {zone} is not served; start the server"
                f" with {zone} among its --zones"
            )
            return
        near = get_close_matches(name, list(known), n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; GET /tables lists them"
        super().__init__(f"there is no table {name} here{hint}")


class ColumnNotFound(BadRequest):
    error = "column_not_found"

    def __init__(self, column: str, table: str, known: Iterable[str]) -> None:
        super().__init__(f"{table} has no column {column}; it has {', '.join(known)}")


class UnfitValue(BadRequest):
    """A lookup by a value that is invalid for the column's type."""

    error = "invalid_value"

    def __init__(self, column: str, type: str, table: str, value: str) -> None:
        super().__init__(f"invalid value {value[:80]!r} for column {column} of {table}, a {type}")


class QueryTooSlow(TookTooLong):
    error = "query_too_slow"

    @classmethod
    def after(cls, seconds: float) -> Self:
        return cls(
            f"the query took longer than {seconds:g} seconds; narrow it, or start the server"
            " with a larger --timeout"
        )


class OutOfMemory(ContentTooLarge):
    """The query exceeds the memory limit."""

    error = "memory_limit"


class Busy(Unavailable):
    """The queue of requests is full."""

    error = "busy"


class TableUnavailable(Unavailable):
    """The table exists, but is temporarily unreadable."""

    error = "table_unavailable"


def of_duckdb(error: duckdb.Error) -> HttpError:
    """Return the answer to an error of DuckDB, with the position in the SQL."""
    message = str(error).strip()
    if isinstance(error, duckdb.InterruptException):
        return QueryTooSlow("the query was stopped because it took too long")
    if isinstance(error, duckdb.OutOfMemoryException):
        return out_of_memory(message)
    if isinstance(error, duckdb.PermissionException):
        return NotReadOnly(message)
    if isinstance(error, duckdb.FatalException | duckdb.InternalException):
        return HttpError(f"DuckDB failed: {message.partition(chr(10))[0]}")
    return _invalid(message)


def of_arrow(error: Exception) -> HttpError:
    """Return the answer to an error of DuckDB that Arrow raised while fetching rows."""
    message = str(error).strip()
    if isinstance(error, MemoryError) or message.startswith("Out of Memory Error"):
        return out_of_memory(message)
    if message.startswith("INTERRUPT Error"):
        return of_duckdb(duckdb.InterruptException(message))
    return _invalid(message)


def _invalid(message: str) -> InvalidQuery:
    kind = UnfilteredTexts if _UNFILTERED.search(message) else InvalidQuery
    return kind(message, details=position(message))


def out_of_memory(message: str) -> OutOfMemory:
    first = message.partition("\n")[0]
    return OutOfMemory(f"the query needs more memory than the limit: {first}".rstrip(": "))


def position(message: str) -> dict[str, Any]:
    """Return the line and column of the caret in DuckDB's message, counted from 1.

    DuckDB abbreviates long lines with leading dots; then the column is unknown.
    """
    found = _LINE.search(message)
    if found is None:
        return {}
    line, shown, spaces = int(found[1]), found[2], found[3]
    if shown.startswith("..."):
        return {"line": line}
    return {"line": line, "column": len(spaces) - len(f"LINE {line}: ") + 1}
