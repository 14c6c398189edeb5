"""What can be wrong with a table or the lake, each with what to do about it."""

from collections.abc import Iterable
from difflib import get_close_matches

from headrace.errors import HeadraceError


class LakeError(HeadraceError):
    """Something about the lake or one of its tables."""


class NoSuchTable(LakeError):
    """A name that the lake does not know."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        near = get_close_matches(name, list(known), n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"there is no table {name}{hint}")


class InvalidName(LakeError):
    """A table's name that is not of the form `zone.table`."""


class IncompatibleSchema(LakeError):
    """A schema that the table cannot become, or rows that do not fit the table."""


class TableRewritten(LakeError):
    """Rows that a reader has seen were changed or removed, so it cannot just go on."""


class VersionGone(LakeError):
    """A version whose log or files are not there any more."""


class WriteFailed(LakeError):
    """The disk did not take what was written; nothing was committed."""


class CommitConflict(LakeError):
    """Others committed to the table each time that we tried."""


class UnsupportedTable(LakeError):
    """The table uses a feature of Delta Lake that is not written here."""
