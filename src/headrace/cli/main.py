"""The `headrace` program: finds the command's module, runs it, and turns failures into one line.

A start of the broker must not pay for commands that it does not run, so nothing but the
called command's module is imported, and the table below carries the summaries of the others.
A command module offers `command`, a click command.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from headrace.errors import HeadraceError

COMMANDS: dict[str, str] = {
    "up": "Start a node and serve Kafka clients until Ctrl-C.",
    "topics": "List, describe, create, alter and delete topics.",
    "configs": "Describe and alter the settings of topics and brokers.",
    "produce": "Write lines from standard input as records.",
    "consume": "Write records to standard output.",
    "queue": "Put tasks into a topic, take them, see how they stand.",
    "offsets": "Show where each partition starts and ends, or stood at a time.",
    "records": "Show a record with its batch, list producers, delete records.",
    "groups": "List, describe, reset and delete groups.",
    "transactions": "List and describe transactions, abort hanging ones.",
    "log": "Dump files of a log readably, list segments and directories.",
    "cluster": "Describe brokers, metadata quorum and features.",
    "pipelines": "Make, check, draw, test and run pipelines on Spark.",
    "tables": "Show the lake's tables: rows, history, lineage, differences.",
    "registry": "Keep schemas in a topic, by Confluent's REST interface.",
    "schema": "Register, compare, check, move and generate schemas.",
    "rest": "Let HTTP clients produce, consume and administer.",
    "serve": "Answer SQL over the lake's tables by HTTP.",
    "capture": "Write a topic into Avro or Parquet files by windows.",
    "spark": "Fetch the jars of Spark's own connector, look for Java.",
    "bench": "Put a load on a cluster and measure throughput and latency.",
    "doctor": "Check this machine before it hurts.",
}

EXTRAS = {
    "deltalake": "lake",
    "duckdb": "lake",
    "fastavro": "lake",
    "pyarrow": "lake",
    "httptools": "http",
    "starlette": "http",
    "uvicorn": "http",
    "pytz": "lake",
    "jsonschema_rs": "serdes",
    "google": "serdes",
    "wsproto": "rest",
    "cel": "rules",
    "llvmlite": "spark",
    "numba": "spark",
    "numpy": "spark",
    "pandas": "spark",
    "py4j": "spark",
    "pyspark": "spark",
}
"""Which extra of the package brings a library that not every install has."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the result is the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _open_closed_streams()
    command = given[0] if given else ""
    try:
        return _run(given)
    except HeadraceError as error:
        return _fail(_explained(error, command), error.exit_code)
    except ImportError as error:
        told = _missing(error, command)
        if told is None:
            raise
        return _fail(told)
    except BrokenPipeError:
        # The reader of our output has left, as `head` does; Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        return 130


def missing_text(library: str, extra: str) -> str:
    """What to do about a library that only some installs have."""
    from headrace.cli.installing import is_under_way

    if is_under_way():
        return (
            f"this needs {library}, which is being installed: `make run` brings Spark and the"
            " lake's libraries, some 900 MB, and says when the pipeline starts. Try again then"
        )
    return (
        f"this needs {library}, of the extra [{extra}]: in a checkout `make .venv/{_target(extra)}`"
        f" installs it, else pip install '/path/to/headrace[{extra}]'"
    )


def _target(extra: str) -> str:
    """Which of the Makefile's installs has an extra; Spark alone is some 900 MB."""
    is_light = extra in ("http", "serdes", "registry", "rest", "rules")
    return "installed" if is_light else "installed-spark"


def _missing(error: ImportError, command: str) -> str | None:
    """What an import that failed is for want of; None where it is a fault of ours.

    A library that is just being installed may be there in part, so any import may fail meanwhile.
    Who runs pipelines needs Spark, whichever of its libraries is missed first.
    """
    from headrace.cli.installing import is_under_way

    library = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(library)
    if extra is not None and isinstance(error, ModuleNotFoundError):
        return missing_text(library, "spark" if command == "pipelines" else extra)
    return missing_text(library or "a library", "spark") if is_under_way() else None


def load(name: str) -> ModuleType:
    """The module of one command."""
    return import_module(f"headrace.cli.{name}")


def _run(arguments: list[str]) -> int:
    from headrace.cli.group import run

    return run(arguments)


def _open_closed_streams() -> None:
    """Let a stream that our parent has closed lead nowhere.

    Its number would else be given to the next socket, which would then be read as our input.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _explained(error: HeadraceError, command: str) -> str:
    """The error with what to do about it, where a client of a cluster raised it.

    A node that does not start must not load the client to say why.
    """
    if "headrace.client.addresses" not in sys.modules:
        return str(error) or type(error).__name__
    from headrace.cli.advice import with_advice

    return with_advice(error, command)


def _fail(message: str, exit_code: int = 1) -> int:
    print(f"headrace: {message}", file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
