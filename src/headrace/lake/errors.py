"""Errors of tables and the lake; each message gives the remedy."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

from headrace.errors import HeadraceError

RESTART_ADVICE = (
    "a reader this far behind has to restart: a flow by `headrace pipelines replay FOLDER`, any"
    " other with a new checkpoint"
)
"""Advice of `VersionGone` for readers that follow a table."""
_NAMES_MAX = 10
_COLOURS = re.compile("\x1b\\[[0-9;]*m")
_NO_ROOM = re.compile(r"os error (?:27|28|30|122)\b")


class LakeError(HeadraceError):
    """Base of the errors of the lake and its tables."""


class NoSuchTable(LakeError):
    """A name that is not in the catalog."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        there = sorted(known)
        near = get_close_matches(name, there, n=3, cutoff=0.5)
        if near:
            hint = f"did you mean {' or '.join(near)}?"
        elif there:
            more = f" and {len(there) - _NAMES_MAX} more" if len(there) > _NAMES_MAX else ""
            hint = f"there are {', '.join(there[:_NAMES_MAX])}{more}"
        else:
            hint = "the lake has none yet"
        super().__init__(f"there is no table {name}; {hint}")


class TableLost(LakeError):
    """The Delta table of a catalog entry is missing: someone has removed or moved it."""


class InvalidName(LakeError):
    """A table's name that is not of the form `zone.table`."""


class IncompatibleSchema(LakeError):
    """A schema that the table cannot evolve to, or rows that do not fit it."""


class TableRewritten(LakeError):
    """Rows that a stream has read were changed or removed, so it cannot continue."""


class VersionGone(LakeError):
    """A version whose log entry or files are gone."""


class WriteFailed(LakeError):
    """A write failed on the disk; nothing was committed."""


class CommitConflict(LakeError):
    """Other writers committed before each attempt."""


class UnusableView(LakeError):
    """A merged view whose entry in the catalog does not fit its tables."""


class FilesChanged(LakeError):
    """A plan conflicts with newer commits and has to be repeated."""


class AppendOnly(LakeError):
    """A change of rows in an append-only table."""


class UnsupportedTable(LakeError):
    """The table uses a feature of Delta Lake that Headrace cannot write."""


def deltalake_error(what: str, error: Exception) -> LakeError:
    """Put deltalake's coloured lines into one; OS error numbers identify a full disk."""
    text = " ".join(_COLOURS.sub("", str(error)).replace("\u21b3", ":").split())
    if _NO_ROOM.search(text):
        return WriteFailed(
            f"{what} could not be written: {text}. Nothing was committed; free or repair the"
            " disk, and run again"
        )
    return LakeError(f"{what} failed: {text}")
