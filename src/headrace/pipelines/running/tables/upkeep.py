"""Joins small files of a running pipeline's tables, without those that a flow has not read yet.

Joined files are removed a day later, and a flow that was stopped for longer, as by a failed
expectation, could not continue. So files are joined up to the version that all followers of the
table have read, and its log is kept from there on.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace.errors import HeadraceError
from headrace.lake.catalog import Lake
from headrace.lake.tables import Table
from headrace.lake.upkeep import SMALL_FILES_MAX, tidy
from headrace.pipelines.running.tables.followers import Follower, has_unread, slowest

_log = logging.getLogger(__name__)

TIDY_EVERY = 100
"""The number of commits after which a table's files are checked."""


@dataclass(slots=True)
class TableTidying:
    """Joins small files of tables, and remembers the version of each at its last check."""

    lake: Lake
    every: int = TIDY_EVERY
    small_files_max: int = SMALL_FILES_MAX
    _looked_at: dict[str, int] = field(default_factory=dict)
    _reported: dict[str, str] = field(default_factory=dict)

    def check(self, tables: Mapping[str, int], followers: Sequence[Follower]) -> None:
        """Join and remove files of tables, in these generations, that all flows have read.

        An error in one table does not affect the others.
        """
        for name, generation in tables.items():
            try:
                self._check_table(self.lake.table(name, generation), followers)
            except (HeadraceError, OSError) as error:
                if self._is_new(name, str(error)):
                    _log.warning("table not tidied", extra={"table": name, "error": str(error)})

    def _check_table(self, table: Table, followers: Sequence[Follower]) -> None:
        newest, slow = table.version, slowest(table, followers)
        version = newest if slow is None else min(newest, slow.version)
        table.record_reader_position(None if slow is None else version)
        if slow is not None and table.is_old_log_needed() and has_unread(table, version):
            advice = (
                f"{slow.follower} has not read the files from version {version + 1} on: let it"
                " continue, remove it from its pipeline, or drop its generation"
            )
            if self._is_new(table.name, advice):
                _log.warning(
                    "files of a table kept for a flow that is behind",
                    extra={"table": table.name, "advice": advice},
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

    def _is_new(self, table: str, problem: str) -> bool:
        """Return whether a table's problem is new, and record it."""
        is_new = self._reported.get(table) != problem
        self._reported[table] = problem
        return is_new
