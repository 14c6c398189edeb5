"""`headrace tables`: look into the tables of a lake, see where rows came from, keep them tidy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import confirm, duration_ms, json_option
from headrace.cli.output import (
    counted,
    print_json,
    print_line,
    print_table,
    size_text,
    time_text,
    warn,
)
from headrace.cli.table_options import (
    lake_option,
    opened_lake,
    opened_table,
    table_options,
    version_option,
)
from headrace.cli.table_rows import cell, commit_document, made_by, plain_row, rows_added
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.lake.catalog import Lake

_ROWS = 20
_HOUR_MS = 3_600_000


@click.group("tables", short_help="Show tables of the lake, their history and lineage.")
def command() -> None:
    """Show tables of the lake, where their rows came from, and keep them tidy."""


@command.command("list")
@lake_option
@json_option
def list_tables(lake: str, as_json: bool) -> int:
    """List all tables and merged views; those that cannot be read are named."""
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
    print_table(
        ("table", "rows", "version", "files", "size", "written", "pipeline"),
        [
            (
                one["name"],
                one["rows"],
                one["version"],
                one["files"],
                size_text(one["size_bytes"]),
                time_text(one["written_ms"]),
                one["pipeline"] or None,
            )
            for one in listed
        ],
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
@click.option("--where", metavar="SQL", help="Only rows for which this is true: 'price > 10'.")
@click.option("--order", metavar="SQL", help="Sort by this: 'minute DESC'.")
@click.option("--columns", metavar="A,B", help="Only these columns.")
@click.option("--limit", type=click.IntRange(min=0), default=_ROWS, show_default=True)
def show_table(
    name: str,
    generation: int | None,
    lake: str,
    as_json: bool,
    version: int | None,
    where: str | None,
    order: str | None,
    columns: str | None,
    limit: int,
) -> None:
    """Show rows of a table or merged view, as they are at this moment or were at a version.

    A pipeline may write to it meanwhile: what is shown is one version, whole. In JSON, bytes are
    written in base64.

    \b
    headrace tables show refined.traffic_by_minute --order "minute DESC"
    headrace tables show raw.orders --where "day = '2026-03-01'" --columns topic,offset
    """
    from headrace.lake.far_times import python_rows

    opened = opened_lake(lake)
    names = [one.strip() for one in columns.split(",")] if columns else None
    if name in opened.views():
        if version is not None or generation is not None:
            raise HeadraceError(f"{name} is a merged view, which has no versions of its own")
        rows, said = _view_rows(opened, name, names, where, limit, order)
    else:
        table = opened.table(name, generation)
        shown = table.version if version is None else version
        rows = table.rows(shown, names, where, limit, order)
        total = sum(max(file.rows, 0) for file in table.files(shown))
        said = f"of {counted(total, 'row')} at version {shown}"
        if where is not None:
            said = f"{'or more ' if rows.num_rows == limit else ''}that match, {said}"
    found = python_rows(rows)
    if as_json:
        print_json([plain_row(row) for row in found])
        return
    print_table(rows.column_names, [[cell(v) for v in row.values()] for row in found])
    print_line(f"{rows.num_rows:,} {said}")


@command.command("history")
@table_options
@click.option("--limit", type=click.IntRange(min=1), default=_ROWS, show_default=True)
def show_history(name: str, generation: int | None, lake: str, as_json: bool, limit: int) -> None:
    """Show a table's commits, newest first: when, what, how many rows, by whom.

    The fingerprint tells by which state of the pipeline's files.
    """
    commits = opened_table(lake, name, generation).history.commits(limit)
    if as_json:
        print_json([commit_document(commit) for commit in commits])
        return
    print_table(
        (
            *("version", "time", "operation", "rows added", "files", "removed", "batch"),
            *("pipeline", "fingerprint"),
        ),
        [
            (
                commit.version,
                time_text(commit.timestamp_ms),
                commit.operation,
                rows_added(commit),
                len(commit.adds),
                len(commit.removes),
                ", ".join(f"{token.writer} {token.batch}" for token in commit.tokens) or "-",
                *made_by(commit.lineage),
            )
            for commit in commits
        ],
    )


@command.command("lineage")
@table_options
@version_option
def show_lineage(
    name: str, generation: int | None, lake: str, as_json: bool, version: int | None
) -> None:
    """Show which offsets and which versions of other tables a version was made of, and by whom.

    The fingerprint tells by which state of the pipeline's files.
    """
    table = opened_table(lake, name, generation)
    lineage = table.history.lineage(version)
    if lineage is None:
        which = "it" if version is None else f"version {version}"
        raise HeadraceError(f"{name} does not say what {which} was made of")
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
def show_schema(
    name: str, generation: int | None, lake: str, as_json: bool, version: int | None
) -> None:
    """Show a table's columns and types."""
    from headrace.lake.schemas import type_text

    table = opened_table(lake, name, generation)
    schema = table.schema_at(table.version if version is None else version)
    fields = [
        {
            "name": field.name,
            "type": type_text(field.type),
            "nullable": field.nullable,
            "is_partition": field.name in table.partition_by,
        }
        for field in schema
    ]
    if as_json:
        print_json(fields)
        return
    print_table(
        ("column", "type", "null", ""),
        [
            (
                one["name"],
                one["type"],
                "yes" if one["nullable"] else "no",
                "partition" if one["is_partition"] else "",
            )
            for one in fields
        ],
    )


@command.command("diff")
@table_options
@click.argument("old", type=click.IntRange(min=0), metavar="VERSION")
@click.argument("new", type=click.IntRange(min=0), metavar="VERSION")
@click.option("--limit", type=click.IntRange(min=0), default=_ROWS, show_default=True)
def show_difference(
    name: str,
    generation: int | None,
    lake: str,
    as_json: bool,
    old: int,
    new: int,
    limit: int,
) -> None:
    """Show rows that one version has and the other has not, and changes of the schema."""
    from headrace.lake.differences import difference
    from headrace.lake.far_times import python_rows

    found = difference(opened_table(lake, name, generation), old, new, limit)
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
def show_files(
    name: str, generation: int | None, lake: str, as_json: bool, version: int | None
) -> None:
    """Show the files that a version of a table consists of."""
    table = opened_table(lake, name, generation)
    files = table.snapshot(table.version if version is None else version)
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
def optimize_table(name: str, generation: int | None, lake: str, as_json: bool) -> None:
    """Make few large files of many small ones; rows and running pipelines notice nothing.

    Files that a flow has yet to read are left as they are.
    """
    from headrace.pipelines.running.followers import followers, has_unread, slowest

    table, opened = opened_table(lake, name, generation), opened_lake(lake)
    slow = slowest(table, followers(opened))
    done = opened.optimize(name, generation, None if slow is None else slow.version)
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
            f"files that came after version {slow.version} are left to {slow.follower}, a flow that"
            " has yet to read them"
        )


@command.command("vacuum")
@table_options
@click.option(
    "--retain",
    type=duration_ms,
    metavar="DURATION",
    help="Keep files that were in the table so recently, as 12h or 7d, in whole hours; a day"
    " unless the table was made otherwise.",
)
@click.option("--dry-run", is_flag=True, help="Only say which files would go.")
def vacuum_table(
    name: str, generation: int | None, lake: str, as_json: bool, retain: int | None, dry_run: bool
) -> None:
    """Remove files of old versions and of failed writes; older versions cannot be shown then."""
    table = opened_table(lake, name, generation)
    files = table.vacuum(None if retain is None else whole_hours(retain), dry_run=dry_run)
    if as_json:
        print_json({"files": sorted(files), "dry_run": dry_run})
        return
    for path in sorted(files) if dry_run else ():
        print_line(path)
    print_line(f"{counted(len(files), 'file')} {'would be ' if dry_run else ''}removed")


def whole_hours(duration_ms: int) -> int:
    """Rather too many than too few, since files go by them; less than one is none."""
    return -(-duration_ms // _HOUR_MS) if duration_ms >= _HOUR_MS else 0


@command.command("restore")
@table_options
@click.argument("version", type=click.IntRange(min=0))
@click.option("--yes", "-y", is_flag=True, help="Do not ask; scripts are never asked.")
def restore_table(
    name: str, generation: int | None, lake: str, as_json: bool, version: int, yes: bool
) -> None:
    """Let a table have the rows of an old version again, as a new version.

    The pipeline goes on behind what it has written already. Streams that read this table must be
    started anew.
    """
    table = opened_table(lake, name, generation)
    confirm(f"Let {name} be as it was at version {version}?", yes=yes)
    made = table.restore(version)
    if as_json:
        print_json({"version": made, "restored": version})
    else:
        print_line(f"{name} is at version {made}, with the rows of version {version}")


def _view_rows(
    lake: "Lake",
    name: str,
    columns: Sequence[str] | None,
    where: str | None,
    limit: int,
    order: str | None,
) -> tuple[Any, str]:
    import pyarrow.dataset as ds

    from headrace.lake.reading import select

    rows = lake.merged_rows(name)
    chosen = select(ds.dataset(rows), columns, where, limit, order)
    return chosen, f"of {counted(rows.num_rows, 'row')}, batch and speed layer merged"


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
