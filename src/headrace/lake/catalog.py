"""The lake: its tables, their folders, and the current generation of each.

The catalog is one small JSON file that is replaced atomically. So a reader sees the tables of one
moment, and several names change together when a rebuilt pipeline takes over.
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

from headrace.lake import errors, merged_views
from headrace.lake.merged_views import MergedViewEntry as MergedViewEntry
from headrace.lake.partitions import check_partition_columns
from headrace.lake.rewriting import Optimized, optimize
from headrace.lake.schemas import evolution, normalised, type_text
from headrace.lake.snapshot import canonical
from headrace.lake.tables import Table
from headrace.runtime.clock import Clock, SystemClock

_HOME = "_headrace"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\.[A-Za-z_][A-Za-z0-9_-]*")

PROPERTIES = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 7 days",
    "delta.enableExpiredLogCleanup": "true",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}
"""A pipeline commits every second for weeks. Delta's default of 30 days would keep millions of log
files, and its default of a week would fill every checkpoint with removed files."""


class Generation(msgspec.Struct, frozen=True):
    """One build of a table."""

    place: str
    """Relative to the lake."""
    pipeline: str = ""
    comment: str = ""
    properties: Mapping[str, str] = {}
    """The table properties that its pipeline has set."""


class Entry(msgspec.Struct, frozen=True):
    """A table by name."""

    name: str
    current: int | None
    """The generation that readers see; None hides the table."""
    generations: Mapping[int, Generation]


class Catalog(msgspec.Struct, frozen=True):
    """The tables and views of a lake by name."""

    tables: Mapping[str, Entry] = {}
    views: Mapping[str, MergedViewEntry] = {}


class Lake:
    """A folder of tables."""

    def __init__(self, root: Path | str, *, clock: Clock = SystemClock()) -> None:  # noqa: B008
        self.root = Path(root)
        self.clock = clock
        self._home = self.root / _HOME
        self._file = self._home / "catalog.json"

    def exists(self) -> bool:
        """Return whether a pipeline has used the folder as a lake."""
        return self._home.is_dir()

    def names(self) -> list[str]:
        """Return the names of the tables that readers see."""
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
        """Open the current generation of a table, or the one that is given."""
        return self.table_of(self.catalog(), name, generation)

    def table_of(self, catalog: Catalog, name: str, generation: int | None = None) -> Table:
        """Open a table by an earlier read of the catalog, to see several tables of one moment."""
        entry = catalog.tables.get(name)
        chosen = generation if generation is not None or entry is None else entry.current
        if entry is None or chosen is None:
            raise errors.NoSuchTable(name, [*catalog.tables, *catalog.views])
        if chosen not in entry.generations:
            raise errors.LakeError(
                f"{name} has no generation {chosen}; it has"
                f" {', '.join(map(str, sorted(entry.generations)))}"
            )
        found = entry.generations[chosen]
        try:
            return Table(name, self.root / found.place, chosen, clock=self.clock)
        except errors.TableLost as error:
            whose = f" of {found.pipeline}" if found.pipeline else ""
            raise errors.TableLost(
                f"{name}: {error}, but the catalog has it: someone has removed or moved it. Put"
                " the folder back. If it is lost, `headrace pipelines replay FOLDER` rebuilds the"
                f" tables{whose}, and the next run rebuilds materialized views"
            ) from error

    def view(self, name: str) -> MergedViewEntry:
        catalog = self.catalog()
        if name not in catalog.views:
            raise errors.NoSuchTable(name, [*catalog.tables, *catalog.views])
        return catalog.views[name]

    def layers(
        self, view: MergedViewEntry, generations: Mapping[str, int] | None = None
    ) -> merged_views.Pair:
        """Look up the versions of both layers to read now, by default in the current generations.

        The speed layer comes first, because it drops parts only after the batch layer has covered
        them. In the other order, parts dropped in between would be in neither version.
        """
        catalog, chosen = self.catalog(), generations or {}
        speed = self.table_of(catalog, view.speed, chosen.get(view.speed))
        batch = self.table_of(catalog, view.batch, chosen.get(view.batch))
        speed_version, batch_version = speed.version, batch.version
        covered = merged_views.covered_version(batch, batch_version)
        return merged_views.Pair(batch, batch_version, covered, speed, speed_version)

    def merged_rows(self, view: MergedViewEntry | str) -> pa.Table:
        """Return the current rows of a merged view."""
        entry = self.view(view) if isinstance(view, str) else view
        return merged_views.merged_rows(entry, self.layers(entry))

    def optimize(
        self, name: str, generation: int | None = None, up_to_version: int | None = None
    ) -> Optimized:
        """Join a table's small files, as far as merged views over it stay exact.

        Commits that a batch layer has not covered yet stay apart: its next run covers the input up
        to some commit, and a file with rows from before and after it would be counted wrong.
        """
        catalog = self.catalog()
        batches = [
            self.table_of(catalog, view.batch, generation)
            for view in catalog.views.values()
            for generation in _generations_in_use(catalog.tables.get(view.batch))
        ]
        covered = [
            merged_views.covered_version(batch)
            for batch in batches
            if batch.name != name and merged_views.input_of(batch) in (name, None)
        ]
        if up_to_version is not None:
            covered.append(up_to_version)
        table = self.table_of(catalog, name, generation)
        return optimize(table, min(covered) if covered else None)

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
        """Create a table, or open the existing one with the same schema and partitions.

        Readers see the first generation at once, and later ones after `switch`.
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

    def record_properties(self, name: str, generation: int, properties: Mapping[str, str]) -> None:
        """Record the properties that the pipeline of a table has set."""

        def record(catalog: Catalog) -> Catalog:
            entry = catalog.tables[name]
            made = entry.generations[generation]
            recorded = msgspec.structs.replace(made, properties=dict(properties))
            generations = {**entry.generations, generation: recorded}
            return _with_table(catalog, msgspec.structs.replace(entry, generations=generations))

        self._edit(record)

    def switch(
        self,
        generations: Mapping[str, int],
        *,
        hidden: Iterable[str] = (),
        views: Mapping[str, MergedViewEntry] | None = None,
    ) -> None:
        """Change the generations that readers see, hide names and add views, all atomically.

        The files of hidden tables stay.
        """

        def change(catalog: Catalog) -> Catalog:
            for name in hidden:
                catalog = _without(catalog, name)
            for name, generation in generations.items():
                entry = catalog.tables.get(name)
                if entry is None or generation not in entry.generations:
                    raise errors.LakeError(f"{name} has no generation {generation} to switch to")
                entry = msgspec.structs.replace(entry, current=generation)
                catalog = _with_table(catalog, entry)
            for name, view in (views or {}).items():
                catalog = _with_view(catalog, name, view)
            return catalog

        self._edit(change)

    def drop(self, name: str, generation: int) -> None:
        """Remove a generation that is not in use from the catalog, then its files."""
        table = self.table(name, generation)

        def forget(catalog: Catalog) -> Catalog:
            entry = catalog.tables[name]
            if entry.current == generation:
                raise errors.LakeError(f"generation {generation} of {name} is in use; switch first")
            kept = {n: one for n, one in entry.generations.items() if n != generation}
            if not kept:
                tables = {key: one for key, one in catalog.tables.items() if key != name}
                return msgspec.structs.replace(catalog, tables=tables)
            return _with_table(catalog, msgspec.structs.replace(entry, generations=kept))

        self._edit(forget)
        shutil.rmtree(table.place)

    def put_view(self, name: str, view: MergedViewEntry) -> None:
        """Add or replace a view."""
        self.switch({}, views={name: view})

    def catalog(self) -> Catalog:
        """Read the catalog; a folder without one is an empty lake."""
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=Catalog)
        except FileNotFoundError:
            return Catalog()
        except msgspec.MsgspecError as error:
            raise errors.LakeError(
                f"{self._file} is damaged: {error}; restore it from a copy"
            ) from error

    def _edit(self, change: Callable[[Catalog], Catalog]) -> None:
        """Read, change and replace the catalog under a lock that all processes share."""
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
            raise errors.WriteFailed(
                f"{self._file} could not be written: {error}. Free or repair the disk, and run"
                " again"
            ) from error


def lakes_in(folder: Path) -> list[Path]:
    """Return the lakes directly in a folder."""
    return sorted(home.parent for home in folder.glob(f"*/{_HOME}"))


def check_name(name: str) -> None:
    """Reject names that are not a zone and a table, such as `raw.orders`."""
    if not _NAME.fullmatch(name):
        raise errors.InvalidName(
            f"{name!r} is not a valid table name; write a zone and a name joined by a dot, such as"
            " raw.orders, with letters, digits, - and _"
        )


def _generations_in_use(entry: Entry | None) -> list[int]:
    """Return the current generation and the later ones that are being built."""
    if entry is None:
        return []
    return [number for number in entry.generations if number >= (entry.current or 0)]


def _with_table(catalog: Catalog, entry: Entry) -> Catalog:
    return msgspec.structs.replace(catalog, tables={**catalog.tables, entry.name: entry})


def _with_view(catalog: Catalog, name: str, view: MergedViewEntry) -> Catalog:
    check_name(name)
    table = catalog.tables.get(name)
    if table is not None and table.current is not None:
        raise errors.LakeError(f"{name} is a table already; give the view another name")
    return msgspec.structs.replace(catalog, views={**catalog.views, name: view})


def _without(catalog: Catalog, name: str) -> Catalog:
    """Return the catalog with a table or view hidden."""
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
    """Write the first version, unless a crash has left one that the catalog does not have."""
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
        raise errors.deltalake_error(f"{name} at {place}", error) from error


def _check_same(table: Table, schema: pa.Schema, partition_by: Sequence[str]) -> None:
    if table.partition_by != tuple(partition_by):
        raise errors.IncompatibleSchema(
            f"{table.name} is partitioned by {', '.join(table.partition_by) or 'nothing'},"
            f" not by {', '.join(partition_by) or 'nothing'}; rebuild it to change that"
        )
    if table.schema.equals(schema):
        return
    needed = evolution(table.schema, schema)
    if needed.is_change:
        changes = [*(f"new column {name}" for name in needed.added)]
        changes += [f"wider column {name}" for name in needed.widened]
        raise errors.IncompatibleSchema(
            f"{table.name} exists with another schema ({', '.join(changes)}); evolve it"
        )
    missing = [f.name for f in table.schema if f.name not in schema.names]
    if missing:
        raise errors.IncompatibleSchema(
            f"{table.name} exists with further columns:"
            f" {', '.join(f'{n} {type_text(table.schema.field(n).type)}' for n in missing)}"
        )
