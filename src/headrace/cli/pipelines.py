"""`headrace pipelines`: create, check, draw, test and run pipelines on Spark."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from headrace.cli.defaults import BOOTSTRAP_VARIABLE
from headrace.cli.options import (
    LakeFolder,
    LocalFolder,
    client_properties,
    command_config_option,
    confirm,
    json_option,
    moment,
    name_value,
    options_as,
    property_option,
    without_brokers,
    yes_option,
)
from headrace.cli.output import (
    counted,
    print_json,
    print_line,
    print_rows,
    print_table,
    size_text,
    warn,
)
from headrace.cli.replay_text import print_comparison

if TYPE_CHECKING:
    from headrace.errors import HeadraceError
    from headrace.pipelines.analysing.checking import Report
    from headrace.pipelines.commands import MetricsPort, Overrides

_LOOPBACK = "127.0.0.1"
FOLDER = LocalFolder()


def folders_argument(command: Any) -> Any:
    """Accept one folder or several; the default is the current folder."""
    return click.argument("folders", nargs=-1, type=FOLDER, metavar="[FOLDER]...")(command)


def folder_argument(command: Any) -> Any:
    return click.argument("folder", type=FOLDER, default=".", metavar="[FOLDER]")(command)


class OverrideOptions(msgspec.Struct, frozen=True):
    """Values of `override_options`."""

    bootstrap: str | None = None
    lake: Path | None = None
    master: str | None = None
    confs: tuple[tuple[str, str], ...] = ()
    command_config: str | None = None
    properties: tuple[tuple[str, str], ...] = ()

    def overrides(self) -> "Overrides":
        from headrace.pipelines.commands import Overrides

        source = click.get_current_context().get_parameter_source("bootstrap")
        is_from_variable = source is ParameterSource.ENVIRONMENT
        return Overrides(
            bootstrap=self.bootstrap,
            bootstrap_variable=BOOTSTRAP_VARIABLE if is_from_variable else None,
            lake=None if self.lake is None else str(self.lake.absolute()),
            master=self.master,
            client=without_brokers(client_properties(self.command_config, self.properties)),
            spark=dict(self.confs),
        )


def override_options(command: Any) -> Any:
    """Options that override pipeline.toml, passed as `given`."""
    command = options_as(OverrideOptions)(command)
    options = (
        click.option(
            "--bootstrap",
            "-b",
            envvar=BOOTSTRAP_VARIABLE,
            metavar="HOST:PORT,...",
            help=f"Brokers to use instead of pipeline.toml's; also from {BOOTSTRAP_VARIABLE}.",
        ),
        click.option(
            "--lake",
            type=LakeFolder(),
            metavar="FOLDER",
            help="Folder of the tables, instead of pipeline.toml's.",
        ),
        click.option(
            "--master",
            metavar="URL",
            help="Spark master to use: local[4], spark://host:7077, k8s://https://host:443, sc://host.",
        ),
        click.option(
            "--conf",
            "confs",
            type=name_value,
            multiple=True,
            metavar="NAME=VALUE",
            help="A Spark setting; may be repeated.",
        ),
        command_config_option,
        property_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group("pipelines", short_help="Create, check, draw, test and run pipelines on Spark.")
def command() -> None:
    """Create, check, draw, test and run data pipelines on Spark.

    A pipeline is a folder: pipeline.toml, and SQL and Python files that declare tables. The default
    FOLDER is the current one.
    """


@command.command("init")
@click.argument("folder", type=FOLDER, metavar="NAME")
def init(folder: Path) -> None:
    """Create a folder with a small working pipeline to start from."""
    from headrace.pipelines.templates import write_template

    for path in write_template(folder):
        print_line(f"{path}")
    print_line("")
    print_line(f"Check it with: headrace pipelines check {folder} --offline")
    print_line(f"Test it with:  headrace pipelines test {folder}")


@command.command("check")
@folders_argument
@click.option("--offline", is_flag=True, help="Do not connect to brokers to check topics.")
@click.option("--no-spark", is_flag=True, help="Skip the check of columns, which starts Spark.")
@click.option("--columns", is_flag=True, help="Show the columns of each table.")
@override_options
@json_option
def check(
    folders: tuple[Path, ...],
    offline: bool,
    no_spark: bool,
    columns: bool,
    as_json: bool,
    given: OverrideOptions,
) -> int:
    """Check pipelines for errors without running them.

    Reads the files, resolves sources and targets, and looks topics up at the brokers, which takes a
    second. If there are no errors, Spark analyses every query over empty tables. Exits with 1 if
    there is an error.
    """
    from headrace.pipelines.analysing import checking, topic_checks
    from headrace.pipelines.commands import checkpoint_problems, load_all
    from headrace.pipelines.spark_sessions import open_spark

    pipelines = load_all(_or_here(folders), given.overrides(), _note)
    topics = None if offline else partial(topic_checks.check_topics, advised=_advised)
    reports = [
        checking.check(pipeline, topics=topics).with_problems(checkpoint_problems(pipeline))
        for pipeline in pipelines
    ]
    if not no_spark and not any(report.problems for report in reports):
        if not as_json:
            _report_start()
        spark = open_spark(pipelines, is_dry_run=True)
        reports = [checking.analysed(report, spark) for report in reports]
    if as_json:
        print_json([_report_values(report) for report in reports])
    else:
        for report in reports:
            _print_report(report, shows_columns=columns)
    return 1 if any(report.problems for report in reports) else 0


@command.command("graph")
@folder_argument
@click.option(
    "--svg",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw a picture into this file.",
)
def draw(folder: Path, svg: Path | None) -> None:
    """Show sources and targets as text, or with --svg as a picture in FILE ('-' for stdout)."""
    from headrace.pipelines.analysing.graph import graph_of
    from headrace.pipelines.project import load

    graph = graph_of(load(folder))
    if svg is None:
        from headrace.pipelines.drawing.text import text_of

        print_line(text_of(graph))
        return
    from headrace.pipelines.drawing.svg import svg_of

    if str(svg) == "-":
        sys.stdout.write(svg_of(graph))
    else:
        svg.write_text(svg_of(graph), encoding="utf-8")


@command.command("test", context_settings={"ignore_unknown_options": True})
@folder_argument
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST OPTION]...")
def test(folder: Path, arguments: tuple[str, ...]) -> int:
    """Run the tests of a pipeline, those in its folder `tests`, with pytest.

    \b
    headrace pipelines test shop -k orders
    """
    from headrace.pipelines.testing.user_tests import run_tests

    return run_tests(folder, arguments)


@command.command("run")
@folders_argument
@click.option(
    "--once/--continuous",
    "is_once",
    default=False,
    help="Stop when all present records are processed; by default, run until Ctrl-C.",
)
@click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    help="Serve /metrics, /health and /ready here during the run; the default host is 127.0.0.1.",
)
@override_options
def run(
    folders: tuple[Path, ...], is_once: bool, metrics: str | None, given: OverrideOptions
) -> None:
    """Run pipelines, several in one Spark driver.

    \b
    headrace pipelines run shop --once
    headrace pipelines run shop web --master spark://10.0.0.1:7077
    headrace pipelines run shop --metrics 9645
    """
    if is_once and metrics is not None:
        raise click.UsageError(
            "--metrics goes with --continuous; `status --json` shows the result of a --once run"
        )

    from headrace.cli.pipeline_progress import Screen, outcome_text
    from headrace.pipelines import commands
    from headrace.spark.launching.cancellation import StartCancelled

    try:
        with Screen() as screen:
            commands.run(
                _or_here(folders),
                is_once=is_once,
                overrides=given.overrides(),
                starting=_report_start,
                note=_note,
                show=screen.show,
                metrics=None if metrics is None else _metrics_port(metrics),
            )
    except StartCancelled as cancelled:
        if is_once:
            raise
        print_line(str(cancelled))  # A continuous run that is cancelled has not failed.
        return
    for one in commands.status(_or_here(folders), given.overrides()):
        print_line(f"{outcome_text(one)}: {one.state}")


@command.command("status")
@folders_argument
@override_options
@json_option
def status(folders: tuple[Path, ...], as_json: bool, given: OverrideOptions) -> None:
    """Show the state of pipelines: rows per zone, lag, last and next runs, failures.

    Also compares the files in the folder with those that the pipeline runs.
    """
    from headrace.cli.pipeline_progress import print_status
    from headrace.pipelines import commands

    found = commands.status(_or_here(folders), given.overrides())
    if as_json:
        print_json(found)
        return
    for one in found:
        print_status(one)


@command.command("stop")
@folders_argument
@override_options
def stop(folders: tuple[Path, ...], given: OverrideOptions) -> None:
    """Stop running pipelines after their current batches."""
    from headrace.pipelines import commands

    stopped = commands.stop(_or_here(folders), given.overrides())
    nothing = "nothing is running with the lake of pipeline.toml; choose another with --lake"
    if given.lake is not None:
        nothing = f"nothing is running with the lake {given.lake}"
    print_line(f"{', '.join(stopped)} stopped" if stopped else nothing)


@command.command("replay")
@folder_argument
@click.option(
    "--keep", multiple=True, metavar="ZONE", help="Keep this zone as is; may be repeated."
)
@click.option(
    "--sinks",
    type=click.Choice(["from-now", "again"]),
    help="Records that flows to topics send from the new tables: new ones only, or all.",
)
@click.option("--no-switch", is_flag=True, help="Build and compare, but do not switch.")
@click.option("--expect-equal", is_flag=True, help="Switch only if all tables are equal.")
@click.option("--back", is_flag=True, help="Switch back to the tables before the last replay.")
@override_options
@json_option
def replay(
    folder: Path,
    keep: tuple[str, ...],
    sinks: str | None,
    no_switch: bool,
    expect_equal: bool,
    back: bool,
    as_json: bool,
    given: OverrideOptions,
) -> None:
    """Rebuild the tables from the log next to the running ones, then switch to them."""
    from headrace.pipelines import commands

    if back:
        if keep or sinks or no_switch or expect_equal:
            raise click.UsageError("--back goes with no other option of a replay")
        generations = commands.switch_back(folder, overrides=given.overrides())
        if as_json:
            print_json({"generations": generations, "compared": []})
        else:
            print_table(("table", "generation"), list(generations.items()))
        return
    _show_log()
    built = commands.replay(
        folder,
        keep=keep,
        sinks=sinks,
        is_switched=not no_switch,
        must_be_equal=expect_equal,
        overrides=given.overrides(),
        starting=_silent if as_json else _report_start,
        note=_note,
        show=(lambda built: None) if as_json else print_comparison,
    )
    if as_json:
        print_json({"generations": built.generations, "compared": built.compared})
        return
    number = max(built.generations.values())
    print_line(
        f"generation {number} is built; the current tables are unchanged"
        if no_switch
        else f"generation {number} is now in use; `--back` returns to the previous tables"
    )


@command.command("generations")
@folder_argument
@override_options
@json_option
def generations(folder: Path, as_json: bool, given: OverrideOptions) -> None:
    """List the generations of a pipeline's tables, from replays and changes of architecture."""
    from headrace.pipelines import commands

    found = commands.generations(folder, overrides=given.overrides())
    print_rows(
        found,
        {
            "table": lambda one: one.table,
            "generation": lambda one: one.generation,
            "rows": lambda one: one.rows,
            "size": lambda one: size_text(one.size_bytes),
            "": lambda one: "in use" if one.is_live else "",
        },
        as_json=as_json,
    )


@command.command("drop-generation")
@click.argument("folder", type=FOLDER)
@click.argument("generation", type=click.IntRange(min=1))
@yes_option
@override_options
@json_option
def drop_generation(
    folder: Path, generation: int, yes: bool, as_json: bool, given: OverrideOptions
) -> None:
    """Remove the tables of an unused GENERATION, with their checkpoints.

    Tables in use are never removed. A dropped generation cannot be restored.
    """
    from headrace.pipelines import commands

    confirm(f"Remove generation {generation} of the tables of {folder}?", yes=yes)
    dropped = commands.drop_generation(folder, generation, overrides=given.overrides())
    if as_json:
        print_json(dropped)
        return
    print_line(
        f"generation {generation} of {', '.join(dropped.tables)} removed:"
        f" {size_text(dropped.freed_bytes)} freed"
    )


@command.command("backfill")
@click.argument("folder", type=FOLDER)
@click.argument("table", metavar="TABLE")
@click.option("--from", "from_ms", type=moment, metavar="TIME", help="Ignore older records.")
@override_options
@json_option
def backfill(
    folder: Path, table: str, from_ms: int | None, as_json: bool, given: OverrideOptions
) -> None:
    """Read records into TABLE that are older than the start of its flows."""
    from headrace.cli.pipeline_progress import print_backfilled
    from headrace.pipelines import commands

    starting = _silent if as_json else _report_start
    _show_log()
    outcomes = commands.backfill(
        folder, table, from_ms=from_ms, overrides=given.overrides(), starting=starting, note=_note
    )
    if as_json:
        print_json(outcomes)
        return
    print_backfilled(outcomes, is_limited=from_ms is not None)


@command.command("redrive")
@click.argument("folder", type=FOLDER)
@click.argument("table", metavar="TABLE")
@override_options
@json_option
def redrive(folder: Path, table: str, as_json: bool, given: OverrideOptions) -> None:
    """Retry the rows in TABLE's quarantine after a fix."""
    from headrace.pipelines import commands

    starting = _silent if as_json else _report_start
    _show_log()
    redriven = commands.redrive(
        folder, table, overrides=given.overrides(), starting=starting, note=_note
    )
    if as_json:
        print_json(redriven)
        return
    print_line(
        f"{counted(redriven.taken, 'row')} retried from quarantine,"
        f" {redriven.refused:,} of them rejected again"
    )
    for reason, count in redriven.reasons.items():
        warn(f"{counted(count, 'row')} kept in quarantine: {reason}")
    if redriven.taken > redriven.refused:
        print_line(
            f"readers of {table} update with the next run, or now if the pipeline is running"
        )


def _show_log() -> None:
    """Print warnings and errors of the command with their fields, until it ends."""
    from headrace.cli.pipeline_progress import LogLines
    from headrace.cli.progress import ProgressLine

    click.get_current_context().with_resource(LogLines(ProgressLine()))


def _report_start() -> None:
    """Report the start of Spark, which takes a while."""
    click.echo("starting Spark (about 10 seconds) ...", err=True)


def _note(text: str) -> None:
    """Print a note, such as about brokers other than pipeline.toml's."""
    click.echo(text, err=True)


def _silent() -> None:
    """Report nothing, for JSON output."""


def _advised(error: "HeadraceError") -> str:
    from headrace.cli.advice import with_advice

    return with_advice(error, "pipelines")


def _metrics_port(text: str) -> "MetricsPort":
    from headrace.http.addresses import ListenAddress
    from headrace.pipelines.commands import MetricsPort

    address = ListenAddress.parse(text if ":" in text else f"{_LOOPBACK}:{text}")
    return MetricsPort(
        address.host,
        address.port,
        lambda page: click.echo(f"metrics are at {page}", err=True),
    )


def _or_here(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    return folders or (Path(),)


def _print_report(report: "Report", *, shows_columns: bool) -> None:
    pipeline = report.pipeline
    if shows_columns:
        for name, columns in report.columns.items():
            print_line(name)
            for column, kind in columns:
                print_line(f"  {column}  {kind}")
    for problem in report.problems:
        warn(str(problem))
    for note in report.notes:
        print_line(f"note: {note}")
    verdict = counted(len(report.problems), "problem") if report.problems else "fine"
    parts = (
        counted(len(pipeline.sources), "source"),
        counted(len(pipeline.datasets), "dataset"),
        counted(len(pipeline.flows), "flow"),
    )
    print_line(f"{pipeline.settings.name}: {', '.join(parts)}: {verdict}")


def _report_values(report: "Report") -> dict[str, Any]:
    return {
        "pipeline": report.pipeline.settings.name,
        "problems": [
            {
                "file": one.location.file if one.location else None,
                "line": one.location.line if one.location else None,
                "text": one.text,
            }
            for one in report.problems
        ],
        "notes": report.notes,
        "columns": {name: dict(columns) for name, columns in report.columns.items()},
        "edges": [
            {"from": edge.source, "to": edge.target, "stream": edge.is_stream}
            for edge in report.graph.edges
        ],
    }
