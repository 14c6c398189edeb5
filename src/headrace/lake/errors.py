"""What can be wrong with a table or the lake, each with what to do about it."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

from headrace.errors import HeadraceError

START_ANEW = (
    "a reader this far behind starts anew: a flow by `headrace pipelines replay FOLDER`, another"
    " one with a new checkpoint"
)
"""What `VersionGone` advises to those who follow a table."""
_NAMES_MAX = 10
_COLOURS = re.compile("\x1b\\[[0-9;]*m")
_NO_ROOM = re.compile(r"os error (?:27|28|30|122)\b")


class LakeError(HeadraceError):
    """Something about the lake or one of its tables."""


class NoSuchTable(LakeError):
    """A name that the lake does not know."""

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
    """There is no Delta table where one should be: someone has removed or moved it."""


class InvalidName(LakeError):
    """A table's name that is not of the form `zone.table`."""


class IncompatibleSchema(LakeError):
    """A schema that the table cannot become, or rows that do not fit the table."""


class TableRewritten(LakeError):
    """Rows that a reader has seen were changed or removed, so it cannot just go on."""


class VersionGone(LakeError):
    """A version whose log or files are not there any more."""


class WriteFailed(LakeError):
    """The disk did not take what was written; nothing of that counts."""


class CommitConflict(LakeError):
    """Others committed to the table each time that we tried."""


class UnusableView(LakeError):
    """A merged view whose entry in the catalog does not fit its tables."""


class FilesChanged(LakeError):
    """What was planned on some version does not fit the newest any more; plan anew."""


class AppendOnly(LakeError):
    """A change of rows in a table that only grows."""


class UnsupportedTable(LakeError):
    """The table uses a feature of Delta Lake that is not written here."""


def wheel_error(what: str, error: Exception) -> LakeError:
    """What the wheel says in several coloured lines, in one; its numbers tell a full disk."""
    text = " ".join(_COLOURS.sub("", str(error)).replace("\u21b3", ":").split())
    if _NO_ROOM.search(text):
        return WriteFailed(
            f"{what} could not be written: {text}. Nothing was committed; make room or mend the"
            " disk, and run again"
        )
    return LakeError(f"{what} failed: {text}")
