"""Formats rows and commits of tables as text for people and as JSON for programs."""

import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headrace.cli.output import Cell

if TYPE_CHECKING:
    from headrace.lake.commit_log import Commit
    from headrace.lake.lineage import Lineage

_TEXT_MAX = 60
"""Longer values are shortened in tables for people."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NAMED = {"\r": "\\r", "\n": "\\n", "\t": "\\t"}


def cell(value: Any) -> Cell:
    """Format a value for a table cell."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, bytes):
        return _cut(value.decode("utf-8", "backslashreplace"))
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ").replace("+00:00", "Z")
    if isinstance(value, dict | list | tuple):
        import msgspec

        return _cut(msgspec.json.encode(_plain(value)).decode())
    return _cut(str(value))


def plain_row(row: dict[str, Any]) -> dict[str, Any]:
    """Convert a row to a JSON object."""
    return {name: _plain(value) for name, value in row.items()}


def commit_document(commit: "Commit") -> dict[str, Any]:
    """Convert a commit to a JSON object."""
    lineage = commit.lineage
    return {
        "version": commit.version,
        "timestamp_ms": commit.timestamp_ms,
        "operation": commit.operation,
        "rows_added": rows_added(commit),
        "files_added": len(commit.adds),
        "files_removed": len(commit.removes),
        "tokens": [{"writer": token.writer, "batch": token.batch} for token in commit.tokens],
        "lineage": lineage.document() if lineage else None,
    }


def rows_added(commit: "Commit") -> int:
    """Return the number of rows that a commit added."""
    return sum(max(file.rows, 0) for file in commit.added_files())


def made_by(lineage: "Lineage | None") -> tuple[str, str]:
    """Return the pipeline with its version, and the fingerprint of its files; `-` if unknown."""
    if lineage is None:
        return "-", "-"
    pipeline = f"{lineage.pipeline or '-'} {lineage.pipeline_version}".rstrip()
    return pipeline, lineage.pipeline_fingerprint or "-"


def _plain(value: Any) -> Any:
    """Convert a value to JSON, with decimals as text to keep all digits."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _cut(text: str) -> str:
    """Shorten a text to one line and escape control characters, which a terminal would execute."""
    line = _CONTROL.sub(lambda found: _NAMED.get(found[0], f"\\x{ord(found[0]):02x}"), text)
    return line if len(line) <= _TEXT_MAX else f"{line[: _TEXT_MAX - 1]}…"
