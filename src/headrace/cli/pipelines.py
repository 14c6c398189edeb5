"""`headrace pipelines`: make, check, draw, test and run pipelines on Spark."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from headrace.cli.defaults import BOOTSTRAP_VARIABLE
from headrace.cli.options import confirm, json_option, moment, name_value
from headrace.cli.output import counted, print_json, print_line, print_table, size_text, warn
from headrace.cli.replay_text import print_comparison

if TYPE_CHECKING:
    from headrace.errors import HeadraceError
    from headrace.pipelines.analysing.checking import Report
    from headrace.pipelines.commands import MetricsPort, Overrides

_LOOPBACK = "127.0.0.1"
FOLDER = click.Path(file_okay=False, path_type=Path)


def folders_argument(command: Any) -> Any:
    """One folder or several; the one at hand when none is named."""
    return click.argument("folders", nargs=-1, type=FOLDER, metavar="[FOLDER]...")(command)


def folder_argument(command: Any) -> Any:
    return click.argument("folder", type=FOLDER, default=".", metavar="[FOLDER]")(command)


def override_options(command: Any) -> Any:
    """What the command line says instead of pipeline.toml."""
    options = (
        click.option(
            "--bootstrap",
            "-b",
            envvar=BOOTSTRAP_VARIABLE,
            metavar="HOST:PORT,...",
            help=f"Other brokers than pipeline.toml names; also from {BOOTSTRAP_VARIABLE}.",
        ),
        click.option("--lake", type=FOLDER, metavar="FOLDER", help="Another place for the tables."),
        click.option(
            "--master",
            metavar="URL",
            help="Another Spark: local[4], spark://host:7077, k8s://https://host:443, sc://host.",
        ),
        click.option(
            "--conf",
            "confs",
            type=name_value,
            multiple=True,
            metavar="NAME=VALUE",
            help="One setting of Spark; may be repeated.",
        ),
        click.option(
            "--property",
            "-X",
            "properties",
            type=name_value,
            multiple=True,
            metavar="NAME=VALUE",
            help="One client setting, such as sasl.username; may be repeated.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group("pipelines", short_help="Make, check, draw, test and run pipelines on Spark.")
def command() -> None:
    """Make, check, draw, test and run data pipelines on Spark.

    A pipeline is a folder: pipeline.toml, and SQL and Python files that declare tables. Where no
    FOLDER is given, the current one is meant.
    """


@command.command("init")
@click.argument("folder", type=FOLDER, metavar="NAME")
def init(folder: Path) -> None:
    """Make a folder with a small pipeline that runs, to be changed into yours."""
    from headrace.pipelines.templates import write_template

    for path in write_template(folder):
        print_line(f"{path}")
    print_line("")
    print_line(f"Check it with: headrace pipelines check {folder} --offline")
    print_line(f"Test it with:  headrace pipelines test {folder}")


@command.command("check")
@folders_argument
@click.option("--offline", is_flag=True, help="Ask no broker about topics.")
@click.option("--no-spark", is_flag=True, help="Check all but columns, in an instant.")
@click.option("--columns", is_flag=True, help="Show the columns of each table.")
@override_options
@json_option
def check(
    folders: tuple[Path, ...],
    offline: bool,
    no_spark: bool,
    columns: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Tell all that is wrong with pipelines, without running them.

    Reads the files, follows who reads whom and asks brokers for the topics, which takes a second.
    If all is well, lets Spark analyse every query over empty tables. Exits with 1 if something is
    wrong.
    """
    from headrace.pipelines.analysing import checking, topic_checks
    from headrace.pipelines.commands import load_all
    from headrace.pipelines.spark_sessions import open_spark

    pipelines = load_all(_or_here(folders), _overrides(given), _note)
    topics = None if offline else partial(topic_checks.check_topics, advised=_advised)
    reports = [checking.check(pipeline, topics=topics) for pipeline in pipelines]
    if not no_spark and not any(report.problems for report in reports):
        if not as_json:
            _tell_start()
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
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
def draw(folder: Path, svg: Path | None) -> None:
    """Show who reads whom, as text, or with --svg as a picture in FILE ('-' for the output)."""
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
    help="Until all is read that is there, or until Ctrl-C (the default).",
)
@click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    help="Serve /metrics, /health and /ready there while they run; on 127.0.0.1 unless told.",
)
@override_options
def run(folders: tuple[Path, ...], is_once: bool, metrics: str | None, **given: Any) -> None:
    """Run pipelines, several in one Spark driver.

    \b
    headrace pipelines run shop --once
    headrace pipelines run shop web --master spark://10.0.0.1:7077
    headrace pipelines run shop --metrics 9645
    """
    if is_once and metrics is not None:
        raise click.UsageError(
            "--metrics goes with --continuous; what a single run has come to is in `status --json`"
        )

    from headrace.cli.pipeline_progress import Screen, outcome_text
    from headrace.pipelines import commands
    from headrace.spark.starting import StartCalledOff

    try:
        with Screen() as screen:
            commands.run(
                _or_here(folders),
                is_once=is_once,
                overrides=_overrides(given),
                starting=_tell_start,
                note=_note,
                show=screen.show,
                metrics=None if metrics is None else _metrics_port(metrics),
            )
    except StartCalledOff as called_off:
        if is_once:
            raise
        print_line(str(called_off))  # What runs until it is stopped has not failed then.
        return
    for one in commands.status(_or_here(folders), _overrides(given)):
        print_line(f"{outcome_text(one)}: {one.state}")


@command.command("status")
@folders_argument
@override_options
@json_option
def status(folders: tuple[Path, ...], as_json: bool, **given: Any) -> None:
    """Show how pipelines stand: rows per zone, lag, last and next runs, what has failed.

    Also tells whether the files in the folder are those that a pipeline runs by.
    """
    from headrace.cli.pipeline_progress import print_status
    from headrace.pipelines import commands

    found = commands.status(_or_here(folders), _overrides(given))
    if as_json:
        print_json(found)
        return
    for one in found:
        print_status(one)


@command.command("stop")
@folders_argument
@override_options
def stop(folders: tuple[Path, ...], **given: Any) -> None:
    """Let running pipelines finish their batches and end."""
    from headrace.pipelines import commands

    stopped = commands.stop(_or_here(folders), _overrides(given))
    nothing = "nothing was running with the lake of pipeline.toml; --lake names another"
    if given["lake"] is not None:
        nothing = f"nothing was running with the lake {given['lake']}"
    print_line(f"{', '.join(stopped)} stopped" if stopped else nothing)


@command.command("replay")
@folder_argument
@click.option("--keep", multiple=True, metavar="ZONE", help="Build this zone not anew.")
@click.option(
    "--sinks",
    type=click.Choice(["from-now", "again"]),
    help="What flows to topics send of the new tables: only what comes, or everything.",
)
@click.option("--no-switch", is_flag=True, help="Build and compare only.")
@click.option("--expect-equal", is_flag=True, help="Switch only if nothing differs.")
@click.option("--back", is_flag=True, help="Let the tables of before the last replay count again.")
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
    **given: Any,
) -> None:
    """Build the tables anew from the log, beside the running ones, then switch to them."""
    from headrace.pipelines import commands

    if back:
        if keep or sinks or no_switch or expect_equal:
            raise click.UsageError("--back goes with no other option of a replay")
        generations = commands.switch_back(folder, overrides=_overrides(given))
        if as_json:
            print_json({"generations": generations, "compared": []})
        else:
            print_table(("table", "generation"), list(generations.items()))
        return
    built = commands.replay(
        folder,
        keep=keep,
        sinks=sinks,
        is_switched=not no_switch,
        must_be_equal=expect_equal,
        overrides=_overrides(given),
        starting=_silent if as_json else _tell_start,
        note=_note,
        show=(lambda built: None) if as_json else print_comparison,
    )
    if as_json:
        print_json({"generations": built.generations, "compared": built.compared})
        return
    number = max(built.generations.values())
    print_line(
        f"generation {number} is built, and not switched to"
        if no_switch
        else f"generation {number} counts now; `--back` returns to the tables of before"
    )


@command.command("generations")
@folder_argument
@override_options
@json_option
def generations(folder: Path, as_json: bool, **given: Any) -> None:
    """List the generations of a pipeline's tables: of replays and changes of architecture."""
    from headrace.pipelines import commands

    found = commands.generations(folder, overrides=_overrides(given))
    if as_json:
        print_json(found)
        return
    print_table(
        ("table", "generation", "rows", "size", ""),
        [
            (
                one.table,
                one.generation,
                one.rows,
                size_text(one.size_bytes),
                "counts" if one.is_live else "",
            )
            for one in found
        ],
    )


@command.command("drop-generation")
@click.argument("folder", type=FOLDER)
@click.argument("generation", type=click.IntRange(min=1))
@click.option("--yes", "-y", is_flag=True, help="Do not ask; scripts are never asked.")
@override_options
@json_option
def drop_generation(folder: Path, generation: int, yes: bool, as_json: bool, **given: Any) -> None:
    """Remove the tables of a GENERATION that does not count, with their checkpoints.

    Tables that count are never removed. There is no way back to a generation that was dropped.
    """
    from headrace.pipelines import commands

    confirm(f"Remove generation {generation} of the tables of {folder}?", yes=yes)
    dropped = commands.drop_generation(folder, generation, overrides=_overrides(given))
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
@click.option("--from", "from_ms", type=moment, metavar="TIME", help="Not what is older than this.")
@override_options
@json_option
def backfill(folder: Path, table: str, from_ms: int | None, as_json: bool, **given: Any) -> None:
    """Bring records into TABLE that are older than where its flows began."""
    from headrace.cli.pipeline_progress import print_backfilled
    from headrace.pipelines import commands

    starting = _silent if as_json else _tell_start
    outcomes = commands.backfill(
        folder, table, from_ms=from_ms, overrides=_overrides(given), starting=starting, note=_note
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
def redrive(folder: Path, table: str, as_json: bool, **given: Any) -> None:
    """Give the rows in TABLE's quarantine another try, after a fix."""
    from headrace.pipelines import commands

    starting = _silent if as_json else _tell_start
    redriven = commands.redrive(
        folder, table, overrides=_overrides(given), starting=starting, note=_note
    )
    if as_json:
        print_json(redriven)
        return
    print_line(
        f"{counted(redriven.taken, 'row')} taken out of quarantine,"
        f" {redriven.refused:,} of them refused again"
    )
    for reason, count in redriven.reasons.items():
        warn(f"{counted(count, 'row')} left in quarantine: {reason}")
    if redriven.taken > redriven.refused:
        print_line(f"what reads {table} follows with the next run, or now if the pipeline runs")


def _tell_start() -> None:
    """Say at once why nothing is seen for a while."""
    click.echo("starting Spark ...", err=True)


def _note(text: str) -> None:
    """For commands that ask brokers: they say so where that is not as pipeline.toml has it."""
    click.echo(text, err=True)


def _silent() -> None:
    """For programs, which are not impatient."""


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


def _overrides(given: dict[str, Any]) -> "Overrides":
    from headrace.pipelines.commands import Overrides

    lake = given["lake"]
    source = click.get_current_context().get_parameter_source("bootstrap")
    return Overrides(
        bootstrap=given["bootstrap"],
        bootstrap_variable=BOOTSTRAP_VARIABLE if source is ParameterSource.ENVIRONMENT else None,
        lake=None if lake is None else str(lake.absolute()),
        master=given["master"],
        client=dict(given["properties"]),
        spark=dict(given["confs"]),
    )


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
                "file": one.place.file if one.place else None,
                "line": one.place.line if one.place else None,
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
