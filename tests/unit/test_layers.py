"""The architecture as a test: imports point downwards only, and start-up imports stay light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "headrace"

# From the doors to the outside world up to the shells. A package may import from its own row and
# from every row before it. A part of a package that is a shell has a row of its own.
ROWS = (
    {"errors", "runtime", "settings"},
    {"protocol"},
    {"security", "storage", "serdes"},
    {"raft", "metadata", "controller"},
    {"coordination"},
    {"groups", "shares", "transactions"},
    {"broker", "client", "http", "serdes.clients", "serdes.registry_client"},
    {"lake"},
    {"spark"},
    {"pipelines", "serving", "capture", "registry", "rest"},
    {"cli", "testing"},
)
HEIGHT = {package: height for height, row in enumerate(ROWS) for package in row}

# Imports nothing until asked, and then by name: what users find under one name lives in two rows.
NAMES_OF_USERS = {"serdes"}

# Side by side in one row, but strangers: what talks to a broker does so over the wire, so that it
# works with any Kafka. Only the command that starts a node knows the broker.
PRODUCTS = (
    *("client", "http", "lake", "spark", "pipelines", "serving", "capture", "registry", "rest"),
    *("cli", "testing", "serdes.clients", "serdes.registry_client"),
)
STRANGERS = {(product, "broker") for product in PRODUCTS} | {
    ("broker", shell) for shell in ("client", "http", "serdes.clients", "serdes.registry_client")
}
STARTS_A_NODE = {"cli.up"}


class Import(NamedTuple):
    module: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"headrace.{self.module} line {self.line} imports headrace.{self.imported}"


def test_every_package_has_a_row() -> None:
    packages = {path.stem for path in PACKAGE.iterdir() if holds_code(path)}
    assert packages <= HEIGHT.keys()


def test_imports_point_downwards() -> None:
    upward = [
        found
        for found in imports()
        if height(found.imported) > height(found.module) and found.module not in NAMES_OF_USERS
    ]
    assert [str(found) for found in upward] == []


def test_only_starting_a_node_imports_the_broker() -> None:
    meetings = [
        found
        for found in imports()
        if (part(found.module), part(found.imported)) in STRANGERS
        and found.module not in STARTS_A_NODE
    ]
    assert [str(found) for found in meetings] == []


def test_what_analyses_a_pipeline_does_not_know_what_runs_it() -> None:
    """So that a dry run needs nothing of a run, and neither imports the other in a circle."""
    below = ("pipelines.analysing", "pipelines.declaring", "pipelines.drawing")
    upward = [
        found
        for found in imports()
        if found.module.startswith(below) and found.imported.startswith("pipelines.running")
    ]
    assert [str(found) for found in upward] == []


@pytest.mark.parametrize("module", ["click", "rich", "confluent_kafka", "cramjam", "http", "json"])
def test_a_node_starts_without(module: str) -> None:
    """Every import costs start-up time and idle memory, so what is rarely used is imported late."""
    program = f"import sys, headrace.broker.node; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@cache
def imports() -> list[Import]:
    """Every import of one Headrace module by another, at the top or inside a function."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        if module != "__init__":
            names = imported_names(ast.parse(path.read_text()))
            found += [Import(module, name, line) for name, line in names]
    return found


def imported_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "headrace":
            names = [f"headrace.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            if name.startswith("headrace."):
                yield name.removeprefix("headrace."), node.lineno


def part(module: str) -> str:
    """What has a row: the package that a module is in, or that part of it."""
    inner = ".".join(module.split(".")[:2])
    return inner if inner in HEIGHT else module.partition(".")[0]


def height(module: str) -> int:
    return HEIGHT[part(module)]


def holds_code(path: Path) -> bool:
    is_package = path.is_dir() and path.name != "__pycache__"
    return is_package or (path.suffix == ".py" and path.stem not in ("__init__", "__main__"))
