"""The generations of tables that one run reads and writes."""

from collections.abc import Iterable, Mapping

from headrace.lake.catalog import Lake
from headrace.lake.tables import Table
from headrace.pipelines.running.tables.generations import FIRST_GENERATION
from headrace.pipelines.running.tables.places import TablePlace


class RunGenerations:
    """The generation of each table in a run.

    Own tables keep the generation of their preparation. A replay may switch them while a view is
    computed; a view from old and new tables would be wrong, and parts removed from the speed layer
    would be lost.
    """

    def __init__(self, lake: Lake, chosen: Mapping[str, int]) -> None:
        self.lake = lake
        self.chosen = dict(chosen)
        """Generations that replace the current ones: those that a replay builds."""
        self.built: dict[str, int] = {}
        """Tables under construction for another architecture."""
        self._prepared: dict[str, int] = {}

    def of(self, table: str) -> int:
        """Return the generation of a table that this run reads and writes."""
        own = self.built | self._prepared | self.chosen
        if table in own:
            return own[table]
        entry = self.lake.catalog().tables.get(table)
        if entry is None:
            return FIRST_GENERATION
        return entry.current or max(entry.generations)

    def keep(self, tables: Iterable[str]) -> None:
        """Keep the generations of prepared tables until the end of the run."""
        self._prepared = {name: self.of(name) for name in tables}

    def for_readers(self) -> dict[str, int]:
        """Return the generations that readers in this run use."""
        return self._current() | self._prepared | self.chosen

    def is_current(self) -> bool:
        """Return whether this run writes the current tables; a replay may have switched them."""
        current = self._current()
        return all(current.get(name, own) == own for name, own in self._prepared.items())

    def table(self, name: str) -> Table:
        return self.lake.table(name, self.of(name))

    def place(self, name: str) -> TablePlace:
        return TablePlace(str(self.lake.root), name, self.of(name))

    def _current(self) -> dict[str, int]:
        entries = self.lake.entries()
        return {entry.name: entry.current for entry in entries if entry.current is not None}
