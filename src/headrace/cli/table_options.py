"""Options of commands about tables of a lake, and how such a table is found."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headrace.cli.main import missing_text
from headrace.cli.options import json_option
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.lake.catalog import Lake
    from headrace.lake.tables import Table

_Command = TypeVar("_Command", bound=Callable[..., Any])


def lake_option(command: _Command) -> _Command:
    """`--lake`: which folder of tables."""
    return click.option(
        "--lake",
        envvar="HEADRACE_LAKE",
        default="lake",
        show_default=True,
        metavar="DIR",
        help="The folder with the tables; also from HEADRACE_LAKE.",
    )(command)


def table_options(command: _Command) -> _Command:
    """What every command about one table takes."""
    generation = click.option(
        "--generation",
        type=click.IntRange(min=1),
        metavar="N",
        help="Another than the one in use, such as one that is being built.",
    )
    name = click.argument("name", metavar="TABLE")
    return name(generation(lake_option(json_option(command))))


def version_option(command: _Command) -> _Command:
    """`--version`: an old version of the table."""
    return click.option(
        "--version", type=click.IntRange(min=0), metavar="N", help="As it was at this version."
    )(command)


def opened_lake(lake: str) -> "Lake":
    """The lake that `--lake` names."""
    try:
        from headrace.lake.catalog import Lake
    except ModuleNotFoundError as error:
        raise HeadraceError(missing_text(error.name or "pyarrow", "lake")) from error
    if not Path(lake).is_dir():
        raise HeadraceError(
            f"there is no lake at {lake}; run a pipeline first, or name the folder with --lake or"
            " HEADRACE_LAKE"
        )
    return Lake(lake)


def opened_table(lake: str, name: str, generation: int | None) -> "Table":
    """A table that is stored; a merged view is not."""
    opened = opened_lake(lake)
    views = opened.views()
    if name in views:
        view = views[name]
        raise HeadraceError(
            f"{name} is a merged view, made when it is asked for from the tables {view.batch} and"
            f" {view.speed}; name one of these"
        )
    return opened.table(name, generation)
