"""The lake: which tables there are, where they lie, and which generation of each is in use.

The catalog is one small JSON file. It is replaced at one stroke, so a reader sees the tables of
one moment, and several names change together when a rebuilt pipeline takes over.
"""

import fcntl
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError

from headrace.lake import merging
from headrace.lake.errors import (
    IncompatibleSchema,
    InvalidName,
    LakeError,
    NoSuchTable,
    TableLost,
    WriteFailed,
    wheel_error,
)
from headrace.lake.head import canonical
from headrace.lake.partitions import check_partition_columns
from headrace.lake.schemas import evolution, normalised, type_text
from headrace.lake.tables import Optimized, Table

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\.[A-Za-z_][A-Za-z0-9_-]*")

PROPERTIES = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 7 days",
    "delta.enableExpiredLogCleanup": "true",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}
"""A pipeline commits every second for weeks: a log that is kept for Delta's 30 days would be
millions of files, and a week of files that compaction removed would fill every checkpoint."""


class Generation(msgspec.Struct, frozen=True):
    """One building of a table."""

    place: str
    """Relative to the lake."""
    pipeline: str = ""
    comment: str = ""
    properties: Mapping[str, str] = {}
    """Those that its pipeline has put on it; others may be of anyone."""


class Entry(msgspec.Struct, frozen=True):
    """A table by name."""

    name: str
    current: int | None
    """The generation that readers see; None if they are to see none."""
    generations: Mapping[int, Generation]


class MergedViewEntry(msgspec.Struct, frozen=True):
    """A view of a lambda pipeline: what the batch layer covers, and behind it the speed layer."""

    name: str
    keys: tuple[str, ...]
    merge: Mapping[str, str]
    """For each column that is no key: sum, min or max."""
    batch: str
    speed: str
    pipeline: str = ""


class Catalog(msgspec.Struct, frozen=True):
    """All that the lake knows by name."""

    tables: Mapping[str, Entry] = {}
    views: Mapping[str, MergedViewEntry] = {}


class Lake:
    """A folder of tables."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self._home = self.root / "_headrace"
        self._file = self._home / "catalog.json"

    def names(self) -> list[str]:
        """The tables that readers can use."""
        return [entry.name for entry in self.entries() if entry.current is not None]

    def entries(self) -> list[Entry]:
        return sorted(self.catalog().tables.values(), key=lambda entry: entry.name)

    def views(self) -> dict[str, MergedViewEntry]:
        return dict(self.catalog().views)

    def has(self, name: str, generation: int | None = None) -> bool:
        entry = self.catalog().tables.get(name)
        if entry is None:
            return False
        return entry.current is not None if generation is None else generation in entry.generations

    def table(self, name: str, generation: int | None = None) -> Table:
        """The table that readers use now, or one generation of it."""
        return self.table_of(self.catalog(), name, generation)

    def table_of(self, catalog: Catalog, name: str, generation: int | None = None) -> Table:
        """A table as the catalog had it at some moment, for those who need several of one."""
        entry = catalog.tables.get(name)
        chosen = generation if generation is not None or entry is None else entry.current
        if entry is None or chosen is None:
            raise NoSuchTable(name, [*catalog.tables, *catalog.views])
        if chosen not in entry.generations:
            raise LakeError(
                f"{name} has no generation {chosen}; it has"
                f" {', '.join(map(str, sorted(entry.generations)))}"
            )
        found = entry.generations[chosen]
        try:
            return Table(name, self.root / found.place, chosen)
        except TableLost as error:
            whose = f" of {found.pipeline}" if found.pipeline else ""
            raise TableLost(
                f"{name}: {error}, but the catalog has it: someone has removed or moved it. Put the"
                " folder back; if it is lost, `headrace pipelines replay FOLDER` builds the tables"
                f"{whose} anew, and a materialized view comes back with the next run by itself"
            ) from error

    def view(self, name: str) -> MergedViewEntry:
        catalog = self.catalog()
        if name not in catalog.views:
            raise NoSuchTable(name, [*catalog.tables, *catalog.views])
        return catalog.views[name]

    def merged_rows(self, view: MergedViewEntry | str) -> pa.Table:
        """The rows of a merged view at this moment."""
        entry = self.view(view) if isinstance(view, str) else view
        return merging.merged_rows(entry, merging.pair(self, entry))

    def optimize(
        self, name: str, generation: int | None = None, up_to_version: int | None = None
    ) -> Optimized:
        """Join a table's small files, as far as that keeps merged views over it exact.

        What a batch layer has not covered yet must still be told apart by commit: its next run
        covers up to some commit, and a file with rows of both sides would be counted wrong.
        """
        catalog = self.catalog()
        batches = [
            self.table_of(catalog, view.batch, generation)
            for view in catalog.views.values()
            for generation in _generations_in_use(catalog.tables.get(view.batch))
        ]
        covered = [
            merging.covered_version(batch)
            for batch in batches
            if batch.name != name and merging.input_of(batch) in (name, None)
        ]
        if up_to_version is not None:
            covered.append(up_to_version)
        table = self.table_of(catalog, name, generation)
        return table.optimize(min(covered) if covered else None)

    def create(
        self,
        name: str,
        schema: pa.Schema,
        *,
        partition_by: Sequence[str] = (),
        pipeline: str = "",
        comment: str = "",
        generation: int = 1,
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Make a table, or find it there with the same schema and partitions.

        The first generation is what readers see; later ones wait for `switch`.
        """
        check_name(name)
        zone, _, table = name.partition(".")
        place = f"{zone}/{table}" + (f".v{generation}" if generation > 1 else "")
        wanted = canonical(normalised(schema))
        check_partition_columns(wanted, partition_by)
        _make(self.root / place, name, wanted, partition_by, comment, properties or {})
        made = Generation(place, pipeline, comment, properties or {})

        def add(catalog: Catalog) -> Catalog:
            old = catalog.tables.get(name, Entry(name, None, {}))
            current = generation if old.current is None and generation == 1 else old.current
            generations = {**old.generations, generation: made}
            return _with_table(catalog, Entry(name, current, generations))

        self._edit(add)
        found = self.table(name, generation)
        _check_same(found, wanted, partition_by)
        return found

    def note_properties(self, name: str, generation: int, properties: Mapping[str, str]) -> None:
        """Remember which properties the pipeline of a table has put on it."""

        def note(catalog: Catalog) -> Catalog:
            entry = catalog.tables[name]
            made = entry.generations[generation]
            noted = msgspec.structs.replace(made, properties=dict(properties))
            generations = {**entry.generations, generation: noted}
            return _with_table(catalog, msgspec.structs.replace(entry, generations=generations))

        self._edit(note)

    def switch(
        self,
        generations: Mapping[str, int],
        *,
        hidden: Iterable[str] = (),
        views: Mapping[str, MergedViewEntry] | None = None,
    ) -> None:
        """Let readers see other generations of these tables, all at the same moment.

        And no longer find what is hidden, tables or views, whose files stay; and find these views.
        """

        def change(catalog: Catalog) -> Catalog:
            for name in hidden:
                catalog = _without(catalog, name)
            for name, generation in generations.items():
                entry = catalog.tables.get(name)
                if entry is None or generation not in entry.generations:
                    raise LakeError(f"{name} has no generation {generation} to switch to")
                entry = msgspec.structs.replace(entry, current=generation)
                catalog = _with_table(catalog, entry)
            for name, view in (views or {}).items():
                catalog = _with_view(catalog, name, view)
            return catalog

        self._edit(change)

    def drop(self, name: str, generation: int) -> None:
        """Forget a generation that is not in use, then remove its files."""
        table = self.table(name, generation)

        def forget(catalog: Catalog) -> Catalog:
            entry = catalog.tables[name]
            if entry.current == generation:
                raise LakeError(f"generation {generation} of {name} is in use; switch first")
            kept = {n: one for n, one in entry.generations.items() if n != generation}
            if not kept:
                tables = {key: one for key, one in catalog.tables.items() if key != name}
                return msgspec.structs.replace(catalog, tables=tables)
            return _with_table(catalog, msgspec.structs.replace(entry, generations=kept))

        self._edit(forget)
        shutil.rmtree(table.place)

    def put_view(self, name: str, view: MergedViewEntry) -> None:
        """Let readers find a view, as it is described now."""
        self.switch({}, views={name: view})

    def catalog(self) -> Catalog:
        """What the lake knows at this moment; a folder without a catalog is an empty lake."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=Catalog)
        except FileNotFoundError:
            return Catalog()
        except msgspec.MsgspecError as error:
            raise LakeError(f"{self._file} is damaged: {error}; restore it from a copy") from error

    def _edit(self, change: Callable[[Catalog], Catalog]) -> None:
        """Read, change and replace the catalog; editors of other processes wait their turn."""
        with self._locked():
            old = self.catalog()
            new = change(old)
            if new != old:
                self._replace(new)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._home.mkdir(parents=True, exist_ok=True)
        with (self._home / "catalog.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _replace(self, catalog: Catalog) -> None:
        from headrace.runtime import files

        content = msgspec.json.format(msgspec.json.encode(catalog), indent=2)
        try:
            files.replace_file(str(self._file), content)
        except OSError as error:
            raise WriteFailed(
                f"{self._file} could not be written: {error}. Make room or mend the disk, and run"
                " again"
            ) from error


def check_name(name: str) -> None:
    """Refuse names that are not of a zone and a table, such as `raw.orders`."""
    if not _NAME.fullmatch(name):
        raise InvalidName(
            f"{name!r} is no name of a table; it is a zone and a name joined by a dot, as in"
            " raw.orders, of letters, digits, - and _"
        )


def _generations_in_use(entry: Entry | None) -> list[int]:
    """The current generation, and those that are being built to follow it."""
    if entry is None:
        return []
    return [number for number in entry.generations if number >= (entry.current or 0)]


def _with_table(catalog: Catalog, entry: Entry) -> Catalog:
    return msgspec.structs.replace(catalog, tables={**catalog.tables, entry.name: entry})


def _with_view(catalog: Catalog, name: str, view: MergedViewEntry) -> Catalog:
    check_name(name)
    table = catalog.tables.get(name)
    if table is not None and table.current is not None:
        raise LakeError(f"{name} is a table already; give the view another name")
    return msgspec.structs.replace(catalog, views={**catalog.views, name: view})


def _without(catalog: Catalog, name: str) -> Catalog:
    """The catalog as readers see it who are not to find a table or view."""
    views = {key: one for key, one in catalog.views.items() if key != name}
    catalog = msgspec.structs.replace(catalog, views=views)
    entry = catalog.tables.get(name)
    if entry is None:
        return catalog
    return _with_table(catalog, msgspec.structs.replace(entry, current=None))


def _make(
    place: Path,
    name: str,
    schema: pa.Schema,
    partition_by: Sequence[str],
    comment: str,
    properties: Mapping[str, str],
) -> None:
    """The first version, unless it is there: a crash may have parted it from the catalog."""
    if DeltaTable.is_deltatable(str(place)):
        return
    try:
        DeltaTable.create(
            str(place),
            schema=DeltaSchema.from_arrow(schema),
            mode="ignore",
            partition_by=list(partition_by),
            name=name,
            description=comment or None,
            configuration={**PROPERTIES, **properties},
        )
    except (DeltaError, OSError) as error:
        raise wheel_error(f"{name} at {place}", error) from error


def _check_same(table: Table, schema: pa.Schema, partition_by: Sequence[str]) -> None:
    if table.partition_by != tuple(partition_by):
        raise IncompatibleSchema(
            f"{table.name} is there, partitioned by {', '.join(table.partition_by) or 'nothing'},"
            f" and not by {', '.join(partition_by) or 'nothing'}; build it anew for that"
        )
    if table.schema.equals(schema):
        return
    needed = evolution(table.schema, schema)
    if needed.is_change:
        changes = [*(f"new column {name}" for name in needed.added)]
        changes += [f"wider column {name}" for name in needed.widened]
        raise IncompatibleSchema(
            f"{table.name} is there with another schema ({', '.join(changes)}); evolve it"
        )
    missing = [f.name for f in table.schema if f.name not in schema.names]
    if missing:
        raise IncompatibleSchema(
            f"{table.name} is there with further columns:"
            f" {', '.join(f'{n} {type_text(table.schema.field(n).type)}' for n in missing)}"
        )
