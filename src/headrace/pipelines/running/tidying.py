"""Keeps the files of a running pipeline's tables few, and leaves those that a flow has yet to read.

A flow follows a table commit by commit, by the files that each has brought. Joined ones are gone
from the table a day later, and a flow that stood still for longer, as with a failed expectation,
would have nothing to go on with. So files are joined up to where all flows have come, no further.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headrace.errors import HeadraceError
from headrace.lake.catalog import Lake
from headrace.lake.upkeep import SMALL_FILES_MAX, tidy
from headrace.pipelines.running.state import FlowState
from headrace.spark import checkpoints

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

    def look(self, tables: Mapping[str, int], flows: Iterable[FlowState]) -> None:
        """Join and remove files of tables, of these generations, that the flows are done with."""
        read = read_by_all(flows)
        for name, generation in tables.items():
            newest = self.lake.table(name, generation).version
            version = min(newest, read.get(name, newest))
            if version - self._looked_at.setdefault(name, 0) < self.every:
                continue
            self._looked_at[name] = version
            try:
                tidy(
                    self.lake,
                    name,
                    generation,
                    up_to_version=version,
                    small_files_max=self.small_files_max,
                )
            except HeadraceError as error:
                _log.warning("the files of %s were not tidied: %s", name, error)


def read_by_all(flows: Iterable[FlowState]) -> dict[str, int]:
    """Up to which version all flows that follow a table have read it."""
    found: dict[str, int] = {}
    for flow in flows:
        versions = {**flow.started_after(), **checkpoints.tables_read(flow.checkpoint)}
        for name, version in versions.items():
            found[name] = min(version, found.get(name, version))
    return found
