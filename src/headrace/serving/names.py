"""What written names stand for: the served table or view, and its columns."""

from headrace.serving.database import Database
from headrace.serving.errors import TableNotFound
from headrace.serving.refreshing import Refresher


class Names:
    """Looks names up as they are now; the lake's catalog may change them at any time."""

    def __init__(self, database: Database, refresher: Refresher) -> None:
        self._database = database
        self._refresher = refresher

    def resolve(self, written: str) -> str:
        """The name of a served table or view, however its letters were written."""
        known = self._refresher.spellings
        name = known.get(written.lower())
        if name is None:
            closed = self._refresher.closed_zones
            raise TableNotFound(written, sorted(set(known.values())), closed)
        return name

    def column_types(self, name: str) -> dict[str, str]:
        """The columns of a table or view with their types, without reading any row."""
        unit = self._refresher.unit(name)
        assert unit is not None
        for one in unit.tables:
            if one.name == name:
                return self._database.types_of(one.shown.schema)
        assert unit.view is not None
        batch = next(one for one in unit.tables if one.name == unit.view.batch)
        types = self._database.types_of(batch.shown.schema)
        return {column: types[column] for column in (*unit.view.keys, *unit.view.merge)}
