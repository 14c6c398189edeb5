"""Keeps the files of a running pipeline's tables few, and leaves those that a flow has yet to read.

Joined files are gone from the table a day later, and a flow that stood still for longer, as with a
failed expectation, would have nothing to go on with. So files are joined up to where all flows have
come that follow the table, no further, and its log is kept from there on.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.errors import HeadraceError
from headrace.lake.catalog import Lake
from headrace.lake.tables import Table
from headrace.lake.upkeep import SMALL_FILES_MAX, tidy
from headrace.pipelines.running.followers import Follower, has_unread, slowest

_log = logging.getLogger(__name__)

TIDY_EVERY = 100
"""After so many commits a table's small files are worth a look."""


@dataclass(slots=True)
class TableTidying:
    """Remembers up to which version each table was looked through."""

    lake: Lake
    every: int = TIDY_EVERY
    small_files_max: int = SMALL_FILES_MAX
    _looked_at: dict[str, int] = field(default_factory=dict)
    _told: dict[str, str] = field(default_factory=dict)

    def look(self, tables: Mapping[str, int], followers: Sequence[Follower]) -> None:
        """Join and remove files of tables, of these generations, that all flows are done with.

        One table that cannot be tidied is no reason to leave the others.
        """
        for name, generation in tables.items():
            try:
                self._look_at(self.lake.table(name, generation), followers)
            except (HeadraceError, OSError) as error:
                self._tell(name, f"the files of {name} were not tidied: {error}")

    def _look_at(self, table: Table, followers: Sequence[Follower]) -> None:
        newest, slow = table.version, slowest(table, followers)
        version = newest if slow is None else min(newest, slow.version)
        table.note_followed(None if slow is None else version)
        if slow is not None and table.is_old_log_needed() and has_unread(table, version):
            self._tell(
                table.name,
                f"the log of {table.name} and its files from version {version + 1} on are kept"
                f" for {slow.follower}, a flow that has yet to read them: let it go on, take it"
                " out of its pipeline, or drop its generation",
            )
        if version - self._looked_at.setdefault(table.name, 0) < self.every:
            return
        self._looked_at[table.name] = version
        tidy(
            self.lake,
            table.name,
            table.generation,
            up_to_version=version,
            small_files_max=self.small_files_max,
        )

    def _tell(self, table: str, text: str) -> None:
        """Warn of a table, but not each time of the same."""
        if self._told.get(table) != text:
            self._told[table] = text
            _log.warning("%s", text)
