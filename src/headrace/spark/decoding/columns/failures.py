"""Failures of payloads: a code per row while scanning, and messages for the bad rows."""

from dataclasses import dataclass, field
from typing import Any, SupportsIndex

import numpy as np
import pyarrow as pa

from headrace.spark.decoding.columns.spans import VOID, Spans

# Codes of scanners and converters, above the kinds in spans.py, so that one number can be either.
EMPTY = 32
UNEXPECTED = 33
CUT_SHORT = 34
CONTROL_CHARACTER = 35
BAD_ESCAPE = 36
NOT_UTF8 = 37
TOO_DEEP = 38
TRAILING = 39
NOT_AN_OBJECT = 40
UNFIT = 41
MISSING = 42
TOO_MANY = 43
TOO_FEW = 44
OPEN_QUOTE = 45
AFTER_QUOTE = 46
RECORD_CUT_SHORT = 47
RECORD_TRAILING = 48
BAD_NUMBER = 49
BAD_LENGTH = 50
BAD_BRANCH = 51
BAD_SYMBOL = 52
BAD_BOOLEAN = 53
TOO_FAR = 54

MESSAGES = {
    EMPTY: "the payload is empty",
    UNEXPECTED: "not JSON: unexpected {excerpt} at byte {position}",
    CUT_SHORT: "not JSON: ends too early, at byte {position}",
    CONTROL_CHARACTER: "not JSON: a control character within a string at byte {position}",
    BAD_ESCAPE: "not JSON: a bad escape within a string at byte {position}",
    NOT_UTF8: "the payload is not UTF-8",
    TOO_DEEP: "not read: nested too deeply at byte {position}",
    TRAILING: "not JSON: {excerpt} follows the value at byte {position}",
    NOT_AN_OBJECT: "not a JSON object but {excerpt}",
    UNFIT: "{path}: {excerpt} is not a {type}",
    TOO_FAR: "{path}: {excerpt} seconds since 1970 are beyond the years 1 to 9999; are they"
    " milliseconds?",
    MISSING: "{path} is NOT NULL but there is no value",
    TOO_MANY: "not CSV of this schema: more fields than the {count} columns",
    TOO_FEW: "not CSV of this schema: fewer fields than the {count} columns",
    OPEN_QUOTE: "not CSV: a quote is not closed, at byte {position}",
    AFTER_QUOTE: "not CSV: {excerpt} follows a closing quote at byte {position}",
    RECORD_CUT_SHORT: "not a record of this Avro schema: ends within {path}",
    RECORD_TRAILING: "not a record of this Avro schema: {length} bytes follow it",
    BAD_NUMBER: "not a record of this Avro schema: invalid {type} for {path} at byte {position}",
    BAD_LENGTH: "not a record of this Avro schema: {path} cannot be so long, at byte {position}",
    BAD_BRANCH: "not a record of this Avro schema: {path} has no such branch, at byte {position}",
    BAD_SYMBOL: "not a record of this Avro schema: {path} has no such symbol, at byte {position}",
    BAD_BOOLEAN: "not a record of this Avro schema: {path} is not a boolean, at byte {position}",
}

EXCERPT_BYTES = 40


@dataclass(frozen=True, slots=True)
class Failures:
    """The first failure of each row: its code, its place, and its column."""

    codes: Any
    starts: Any
    ends: Any
    columns: Any
    names: list[tuple[str, str]] = field(default_factory=list)
    """Path and type of each column number."""

    def column(self, path: str, type_name: str) -> int:
        """Return a number for a column."""
        self.names.append((path, type_name))
        return len(self.names) - 1

    def note(self, code: int, spans: Spans, index: SupportsIndex, column: int) -> None:
        """Record a bad value, unless its row is bad already."""
        row = spans.rows[index]
        if not self.codes[row]:
            self.codes[row] = code
            self.starts[row] = spans.starts[index]
            self.ends[row] = spans.ends[index]
            self.columns[row] = column

    @property
    def arrays(self) -> tuple[Any, Any, Any, Any]:
        """The arrays for compiled code."""
        return self.codes, self.starts, self.ends, self.columns

    @property
    def are_there(self) -> bool:
        return bool(self.codes.any())

    def messages(self, roots: Spans) -> Any:
        """Return a message per row, null for good rows."""
        if not self.are_there:
            return pa.nulls(len(self.codes), pa.string())
        texts: list[str | None] = [None] * len(self.codes)
        for row in np.flatnonzero(self.codes):
            texts[row] = self._message(int(row), roots)
        return pa.array(texts, pa.string())

    def _message(self, row: int, roots: Spans) -> str:
        start, end = int(self.starts[row]), int(self.ends[row])
        path, type_name = self.names[self.columns[row]] if self.names else ("", "")
        return MESSAGES[int(self.codes[row])].format(
            path=path,
            type=type_name,
            position=start - int(roots.starts[row]),
            length=end - start,
            excerpt=excerpt_of(bytes(roots.data[start : min(end, start + EXCERPT_BYTES + 1)])),
            count=len(self.names),
        )


def no_failures(count: int) -> Failures:
    return Failures(
        np.zeros(count, np.uint8),
        np.zeros(count, np.int32),
        np.zeros(count, np.int32),
        np.zeros(count, np.int32),
    )


def excerpt_of(text: bytes) -> str:
    """Return the beginning of a value on one line."""
    shown = ascii(text[:EXCERPT_BYTES].decode("utf-8", "replace"))
    return f"{shown}..." if len(text) > EXCERPT_BYTES else shown


def note_bad_utf8(payloads: Any, roots: Spans, failures: Failures) -> None:
    """Void the payloads that are not UTF-8, before any string is taken from them."""
    try:
        payloads.cast(pa.string())
    except pa.ArrowInvalid:
        for index in range(len(roots)):
            if roots.kinds[index] != VOID and not is_utf8(roots.text(index)):
                failures.note(NOT_UTF8, roots, index, 0)
                roots.kinds[index] = VOID


def is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
