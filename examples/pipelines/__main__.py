"""Runs an example by one command, from records to tables: `make example NAME=flight_status`.

    python -m examples.pipelines flight_status

Starts a broker, sends the example's records, runs its pipeline once, shows the tables, and compares
them with the numbers in the example's expected.toml.
"""

import argparse
import importlib
import sys
import tempfile
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from examples.pipelines.checking import differences, load
from examples.pipelines.feeding import PARTITIONS, feed
from headrace.lake.catalog import Lake
from headrace.pipelines import commands
from headrace.testing.process import BrokerProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parent
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/pipeline.toml"))


def run(name: str, bootstrap: str, lake: Path, spark: "SparkSession | None" = None) -> list[str]:
    """Send an example's records and run its pipeline once; return the differences."""
    generate = importlib.import_module(f"examples.pipelines.{name}.generate")
    count = feed(bootstrap, generate.records(), generate.TOPICS)
    print(f"{count} records sent to {', '.join(generate.TOPICS)}; the pipeline runs ...")
    overrides = commands.Overrides(bootstrap=bootstrap, lake=str(lake))
    commands.run([FOLDER / name], is_once=True, overrides=overrides, spark=spark)
    return differences(FOLDER / name, Lake(lake), bootstrap)


def own_broker(place: Path) -> BrokerProcess:
    """Run a broker for examples, with the default number of partitions for topics of sinks."""
    return BrokerProcess(place, {"num.partitions": PARTITIONS})


def show(name: str, lake: Lake) -> None:
    """Print the results of the example's queries."""
    expected = tomllib.loads((FOLDER / name / "expected.toml").read_text(encoding="utf-8"))
    with duckdb.connect() as tables:
        load(lake, tables)
        for answer in expected["answers"]:
            print(f"\n{answer['query']}")
            tables.sql(answer["query"]).show()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.pipelines", description=__doc__)
    parser.add_argument("name", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="use this cluster")
    parser.add_argument(
        "--lake", type=Path, metavar="FOLDER", help="keep the tables in this folder"
    )
    given = parser.parse_args()
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bootstrap, lake = given.bootstrap, given.lake or place / "lake"
        if bootstrap is None:
            bootstrap = stack.enter_context(own_broker(place)).bootstrap_servers
        wrong = run(given.name, bootstrap, lake)
        show(given.name, Lake(lake))
    if wrong:
        sys.exit("\n".join(wrong))
    print("\nAll numbers match expected.toml.")


if __name__ == "__main__":
    main()
