"""`headrace spark`: what Spark needs on a machine, checked or fetched."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from headrace.cli.output import print_line, warn


@click.group(
    "spark",
    short_help="Check what Spark needs, let it start sooner, fetch the jars of its connectors.",
)
def command() -> None:
    """What Spark needs on this machine.

    Headrace's own source and sink, format("headrace"), need no jars.
    """


@command.command("doctor")
def doctor() -> None:
    """Check Java, PySpark and the packages that executors need."""
    from headrace.spark.requirements import examine

    findings = examine()
    for finding in findings:
        print_line(f"{'ok  ' if finding.is_fine else 'FAIL'}  {finding.text}")
    if not all(finding.is_fine for finding in findings):
        sys.exit(1)


@command.command("warm")
@click.option("--again", is_flag=True, help="Also if they are kept already.")
def warm(again: bool) -> None:
    """Keep Spark's classes and compiled decoders ready for the sessions on this machine.

    They start with half the work. Takes about a minute and 200 MB of the user's cache, once for
    each Spark and Java.
    """
    from headrace.spark.class_archive import make_archive
    from headrace.spark.decoding.compiling import compile_decoders

    warn("starting Spark once for its classes, and compiling decoders, unless they are kept ...")
    with ThreadPoolExecutor(1) as beside:
        making = beside.submit(make_archive, again=again)
        if not compile_decoders():
            warn("decoders stay slow: numba is not installed")
        print_line(f"Spark's classes are kept in {making.result()}")


@command.command("jars")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
def jars(directory: Path) -> None:
    """Fetch the jars of Spark's stock Kafka connector and of its Avro reader through Maven.

    format("kafka") and format("avro") need them; the first alone offers Spark's real-time mode, the
    second reads captured Avro files. Prints the setting that makes Spark load them.
    """
    from headrace.spark.jars import fetch_jars, spark_jars

    found = fetch_jars(directory, lambda artifact: warn(f"fetching {artifact}"))
    print_line(f"spark.jars={spark_jars(found)}")
