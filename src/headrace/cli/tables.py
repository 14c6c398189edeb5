"""`headrace tables`: inspect the tables of a lake, their lineage, and keep them tidy."""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from headrace.cli.options import confirm, duration_ms, json_option, options_as, yes_option
from headrace.cli.output import (
    counted,
    print_json,
    print_line,
    print_rows,
    print_table,
    size_text,
    time_text,
    warn,
)
from headrace.cli.table_options import (
    ChosenTable,
    lake_option,
    opened_lake,
    table_options,
    version_option,
)
from headrace.cli.table_rows import cell, commit_document, made_by, plain_row, rows_added
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.lake.catalog import Lake

_ROWS = 20
_HOUR_MS = 3_600_000


class RowSelection(msgspec.Struct, frozen=True):
    """Options that choose rows and columns of a table."""

    limit: int
    columns: list[str] | None = None
    where: str | None = None
    order: str | None = None

    def arguments(self) -> tuple[list[str] | None, str | None, int, str | None]:
        """Return the arguments for reading: columns, condition, limit and order."""
        columns = [name.strip() for name in self.columns] if self.columns else None
        return columns, self.where, self.limit, self.order


@click.group("tables", short_help="Show tables of the lake, their history and lineage.")
def command() -> None:
    """Show tables of the lake and their lineage, and keep them tidy."""


@command.command("list")
@lake_option
@json_option
def list_tables(lake: str, as_json: bool) -> int:
    """List all tables and merged views; report unreadable ones."""
    opened = opened_lake(lake)
    listed, broken = [], 0
    for name in opened.names():
        try:
            listed.append(_listed(opened, name))
        except HeadraceError as error:
            warn(f"{name}: {error}")
            broken = 1
    views = [
        {"name": name, "batch": view.batch, "speed": view.speed, "pipeline": view.pipeline}
        for name, view in sorted(opened.views().items())
    ]
    if as_json:
        print_json({"tables": listed, "views": views})
        return broken
    print_rows(
        listed,
        {
            "table": lambda one: one["name"],
            "rows": lambda one: one["rows"],
            "version": lambda one: one["version"],
            "files": lambda one: one["files"],
            "size": lambda one: size_text(one["size_bytes"]),
            "written": lambda one: time_text(one["written_ms"]),
            "pipeline": lambda one: one["pipeline"] or None,
        },
    )
    if views:
        print_line("")
        print_table(
            ("merged view", "batch", "speed", "pipeline"),
            [(one["name"], one["batch"], one["speed"], one["pipeline"] or None) for one in views],
        )
    return broken


@command.command("show")
@table_options
@version_option
@click.option(
    "--where", metavar="SQL", help="Show only rows that satisfy this condition: 'price > 10'."
)
@click.option("--order", metavar="SQL", help="Sort by this: 'minute DESC'.")
@click.option(
    "--columns", type=lambda text: text.split(","), metavar="A,B", help="Only these columns."
)
@click.option("--limit", type=click.IntRange(min=0), default=_ROWS, show_default=True)
@options_as(RowSelection, "selection")
def show_table(
    chosen: ChosenTable, version: int | None, selection: RowSelection, as_json: bool
) -> None:
    """Show rows of a table or merged view, now or at an old version.

    All rows are of one version, even if a pipeline writes meanwhile. In JSON, bytes are base64.

    \b
    headrace tables show refined.traffic_by_minute --order "minute DESC"
    headrace tables show raw.orders --where "day = '2026-03-01'" --columns topic,offset
    """
    import pyarrow.dataset as ds

    from headrace.lake.arrow_times import python_rows
    from headrace.lake.reading import select

    name, opened = chosen.name, opened_lake(chosen.lake)
    if name in opened.views():
        if version is not None or chosen.generation is not None:
            raise HeadraceError(f"{name} is a merged view, which has no versions of its own")
        merged = opened.merged_rows(name)
        rows = select(ds.dataset(merged), *selection.arguments())
        counts = f"of {counted(merged.num_rows, 'row')}, batch and speed layer merged"
    else:
        table = opened.table(name, chosen.generation)
        shown = table.version if version is None else version
        rows = table.rows(shown, *selection.arguments())
        total = sum(max(file.rows, 0) for file in table.files(shown))
        counts = f"of {counted(total, 'row')} at version {shown}"
        if selection.where is not None:
            more = "or more " if rows.num_rows == selection.limit else ""
            counts = f"{more}that match, {counts}"
    found = python_rows(rows)
    if as_json:
        print_json([plain_row(row) for row in found])
        return
    print_table(rows.column_names, [[cell(v) for v in row.values()] for row in found])
    print_line(f"{rows.num_rows:,} {counts}")


@command.command("history")
@table_options
@click.option("--limit", type=click.IntRange(min=1), default=_ROWS, show_default=True)
def show_history(chosen: ChosenTable, as_json: bool, limit: int) -> None:
    """Show a table's commits, newest first: time, operation, rows, pipeline.

    The fingerprint identifies the state of the pipeline's files.
    """
    commits = chosen.opened().history.commits(limit)
    if as_json:
        print_json([commit_document(commit) for commit in commits])
        return
    print_rows(
        commits,
        {
            "version": lambda one: one.version,
            "time": lambda one: time_text(one.timestamp_ms),
            "operation": lambda one: one.operation,
            "rows added": rows_added,
            "files": lambda one: len(one.adds),
            "removed": lambda one: len(one.removes),
            "batch": lambda one: ", ".join(f"{by.writer} {by.batch}" for by in one.tokens) or "-",
            "pipeline": lambda one: made_by(one.lineage)[0],
            "fingerprint": lambda one: made_by(one.lineage)[1],
        },
    )


@command.command("lineage")
@table_options
@version_option
def show_lineage(chosen: ChosenTable, as_json: bool, version: int | None) -> None:
    """Show the offsets and table versions that a version was made from, and the pipeline.

    The fingerprint identifies the state of the pipeline's files.
    """
    table = chosen.opened()
    lineage = table.history.lineage(version)
    if lineage is None:
        which = "its version" if version is None else f"version {version}"
        raise HeadraceError(f"{chosen.name} has no lineage for {which}")
    if as_json:
        print_json(lineage.document())
        return
    pipeline, fingerprint = made_by(lineage)
    print_line(f"pipeline     {pipeline}")
    print_line(f"fingerprint  {fingerprint}")
    print_line(f"flow         {lineage.flow or '-'}")
    if lineage.offsets:
        print_line("")
        print_table(
            ("topic", "partition", "from offset", "to offset"),
            [
                (topic, partition, start, end)
                for topic, partitions in sorted(lineage.offsets.items())
                for partition, (start, end) in sorted(partitions.items(), key=_by_number)
            ],
        )
    if lineage.inputs:
        print_line("")
        print_table(
            ("table", "after version", "to version"),
            [(one, start, end) for one, (start, end) in sorted(lineage.inputs.items())],
        )


@command.command("schema")
@table_options
@version_option
def show_schema(chosen: ChosenTable, as_json: bool, version: int | None) -> None:
    """Show a table's columns and types."""
    from headrace.lake.schemas import type_text

    table = chosen.opened()
    schema = table.schema_at(table.version if version is None else version)
    fields: list[dict[str, Any]] = [
        {
            "name": field.name,
            "type": type_text(field.type),
            "nullable": field.nullable,
            "is_partition": field.name in table.partition_by,
        }
        for field in schema
    ]
    print_rows(
        fields,
        {
            "column": lambda one: one["name"],
            "type": lambda one: one["type"],
            "null": lambda one: "yes" if one["nullable"] else "no",
            "": lambda one: "partition" if one["is_partition"] else "",
        },
        as_json=as_json,
    )


@command.command("diff")
@table_options
@click.argument("old", type=click.IntRange(min=0), metavar="VERSION")
@click.argument("new", type=click.IntRange(min=0), metavar="VERSION")
@click.option("--limit", type=click.IntRange(min=0), default=_ROWS, show_default=True)
def show_difference(
    chosen: ChosenTable,
    as_json: bool,
    old: int,
    new: int,
    limit: int,
) -> None:
    """Show rows that only one of two versions has, and changes of the schema."""
    from headrace.lake.arrow_times import python_rows
    from headrace.lake.version_differences import difference

    found = difference(chosen.opened(), old, new, limit)
    added, removed = python_rows(found.added), python_rows(found.removed)
    if as_json:
        print_json(
            {
                "schema_changes": found.schema_changes,
                "rows_added": found.rows_added,
                "rows_removed": found.rows_removed,
                "added": [plain_row(row) for row in added],
                "removed": [plain_row(row) for row in removed],
            }
        )
        return
    for change in found.schema_changes:
        print_line(change)
    print_line(
        f"{counted(found.rows_added, 'row')} added,"
        f" {counted(found.rows_removed, 'row')} removed from version {old} to {new}"
    )
    rows = [("-", row) for row in removed] + [("+", row) for row in added]
    if rows:
        print_table(
            ("", *found.added.column_names),
            [(sign, *map(cell, row.values())) for sign, row in rows],
        )


@command.command("files")
@table_options
@version_option
def show_files(chosen: ChosenTable, as_json: bool, version: int | None) -> None:
    """Show the files of a version of a table."""
    table = chosen.opened()
    files = table.snapshot_files(table.version if version is None else version)
    if as_json:
        print_json(
            [
                {
                    "path": str(table.place / file.path),
                    "rows": file.rows,
                    "size_bytes": file.size_bytes,
                    "version": file.version,
                    "partition": file.partition_values,
                }
                for file in files
            ]
        )
        return
    print_table(
        ("file", "rows", "size", "version"),
        [(file.path, file.rows, size_text(file.size_bytes), file.version) for file in files],
    )


@command.command("optimize")
@table_options
def optimize_table(chosen: ChosenTable, as_json: bool) -> None:
    """Join small files into large ones; rows and running pipelines are not affected.

    Files that a flow has yet to read are kept.
    """
    from headrace.pipelines.running.tables.followers import followers, has_unread, slowest

    table, opened = chosen.opened(), opened_lake(chosen.lake)
    slow = slowest(table, followers(opened))
    name = chosen.name
    done = opened.optimize(name, chosen.generation, None if slow is None else slow.version)
    if as_json:
        print_json(done)
        return
    if done.files_before:
        print_line(
            f"{name}: {counted(done.files_before, 'file')} of {size_text(done.bytes_before)}"
            f" became {counted(done.files_after, 'file')} of {size_text(done.bytes_after)}"
        )
    else:
        print_line(f"{name}: nothing to join")
    if slow is not None and has_unread(table, slow.version):
        print_line(
            f"files after version {slow.version} are kept for {slow.follower}, a flow that"
            " has yet to read them"
        )


@command.command("vacuum")
@table_options
@click.option(
    "--retain",
    type=duration_ms,
    metavar="DURATION",
    help="Keep files that the table used within this time, such as 12h or 7d, in whole hours;"
    " by default the table's setting, usually a day.",
)
@click.option("--dry-run", is_flag=True, help="Only list the files to remove.")
def vacuum_table(chosen: ChosenTable, as_json: bool, retain: int | None, dry_run: bool) -> None:
    """Remove files of old versions and failed writes; older versions become unreadable."""
    table = chosen.opened()
    files = table.vacuum(None if retain is None else whole_hours(retain), dry_run=dry_run)
    if as_json:
        print_json({"files": sorted(files), "dry_run": dry_run})
        return
    for path in sorted(files) if dry_run else ():
        print_line(path)
    print_line(f"{counted(len(files), 'file')} {'would be ' if dry_run else ''}removed")


def whole_hours(duration_ms: int) -> int:
    """Round up to whole hours, to keep rather too many files; less than an hour is 0."""
    return -(-duration_ms // _HOUR_MS) if duration_ms >= _HOUR_MS else 0


@command.command("restore")
@table_options
@click.argument("version", type=click.IntRange(min=0))
@yes_option
def restore_table(chosen: ChosenTable, as_json: bool, version: int, yes: bool) -> None:
    """Restore the rows of an old version as a new version.

    The pipeline continues after its last write. Streams that read this table must be restarted.
    """
    table = chosen.opened()
    name = chosen.name
    confirm(f"Restore {name} to version {version}?", yes=yes)
    made = table.restore(version)
    if as_json:
        print_json({"version": made, "restored": version})
    else:
        print_line(f"{name} is at version {made}, with the rows of version {version}")


def _listed(lake: "Lake", name: str) -> dict[str, Any]:
    entry = lake.catalog().tables[name]
    table = lake.table(name)
    files = table.files()
    newest = table.history.commits(1)
    return {
        "name": name,
        "rows": sum(max(file.rows, 0) for file in files),
        "version": table.version,
        "files": len(files),
        "size_bytes": sum(file.size_bytes for file in files),
        "written_ms": newest[0].timestamp_ms if newest else -1,
        "pipeline": entry.generations[table.generation].pipeline,
        "comment": entry.generations[table.generation].comment,
        "generation": table.generation,
        "building": [one for one in entry.generations if one > table.generation],
    }


def _by_number(item: tuple[str, Any]) -> int:
    return int(item[0])
