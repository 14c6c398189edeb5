"""`headrace spark`: check and prepare a machine for Spark."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from headrace.cli.options import LocalFolder
from headrace.cli.output import print_line, warn


@click.group(
    "spark",
    short_help="Check Java and Spark, prepare faster starts, fetch connector jars.",
)
def command() -> None:
    """Check and prepare this machine for Spark.

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
@click.option("--again", is_flag=True, help="Rebuild the cache even if it exists.")
def warm(again: bool) -> None:
    """Cache Spark's classes and compiled decoders for later sessions.

    Sessions then start with half the work. Takes about a minute and 200 MB of the user's cache,
    once for each virtual environment, and again after an upgrade of Spark or Java.
    """
    from headrace.spark.compiling import compile_decoders
    from headrace.spark.launching.class_archive import make_archive

    warn("starting Spark once to cache its classes, and compiling decoders (about a minute) ...")
    with ThreadPoolExecutor(1) as beside:
        making = beside.submit(make_archive, again=again)
        if not compile_decoders():
            warn("decoders are not compiled: numba is not installed")
        print_line(f"Spark's classes are cached in {making.result()}")


@command.command("jars")
@click.argument("directory", type=LocalFolder())
def jars(directory: Path) -> None:
    """Fetch the jars of Spark's stock Kafka connector and of its Avro reader through Maven.

    format("kafka") and format("avro") need them. Only format("kafka") supports Spark's real-time
    mode; format("avro") reads captured Avro files. Prints the setting that loads the jars.
    """
    from headrace.spark.jars import fetch_jars, spark_jars

    found = fetch_jars(directory, lambda artifact: warn(f"fetching {artifact}"))
    print_line(f"spark.jars={spark_jars(found)}")
