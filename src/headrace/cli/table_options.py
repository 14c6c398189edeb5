"""Options of commands about tables of a lake, and the look-up of tables."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from headrace.cli.extras import missing_text
from headrace.cli.options import LakeFolder, json_option, options_as
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.lake.catalog import Lake
    from headrace.lake.tables import Table

_Command = TypeVar("_Command", bound=Callable[..., Any])


class ChosenTable(msgspec.Struct, frozen=True):
    """Values of `table_options`."""

    name: str
    lake: str
    generation: int | None = None

    def opened(self) -> "Table":
        """Open a stored table; merged views are rejected."""
        opened = opened_lake(self.lake)
        views = opened.views()
        if self.name in views:
            view = views[self.name]
            raise HeadraceError(
                f"{self.name} is a merged view, computed from the tables {view.batch} and"
                f" {view.speed}; use one of these"
            )
        return opened.table(self.name, self.generation)


def lake_option(command: _Command) -> _Command:
    """`--lake`: the folder of the tables."""
    return click.option(
        "--lake",
        type=LakeFolder(path_type=str),
        envvar="HEADRACE_LAKE",
        default="lake",
        show_default=True,
        metavar="DIR",
        help="The folder with the tables; also from HEADRACE_LAKE.",
    )(command)


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every command about one table, passed as `chosen`."""
    generation = click.option(
        "--generation",
        type=click.IntRange(min=1),
        metavar="N",
        help="Generation to use instead of the current one, such as one being built.",
    )
    name = click.argument("name", metavar="TABLE")
    command = options_as(ChosenTable, "chosen")(command)
    return name(generation(lake_option(json_option(command))))


def version_option(command: _Command) -> _Command:
    """`--version`: an old version of the table."""
    return click.option(
        "--version",
        type=click.IntRange(min=0),
        metavar="N",
        show_default="the newest",
        help="Version to show.",
    )(command)


def opened_lake(lake: str) -> "Lake":
    """Open the lake of `--lake`."""
    try:
        from headrace.lake.catalog import Lake, lakes_in
    except ModuleNotFoundError as error:
        raise HeadraceError(missing_text(error.name or "pyarrow", "lake")) from error
    opened = Lake(lake)
    if not opened.exists():
        near = " or ".join(map(str, lakes_in(Path(lake))))
        raise HeadraceError(
            f"no lake at {lake}; did you mean {near}?"
            if near
            else f"no lake at {lake}; run a pipeline first, or give the folder with --lake or"
            " HEADRACE_LAKE"
        )
    return opened
