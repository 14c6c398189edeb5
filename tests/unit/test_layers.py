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
    {"quotas", "security", "storage", "serdes"},
    {"raft"},
    {"metadata"},
    {"metadata.log"},
    {"controller"},
    {"peers"},
    {"coordination", "quorum", "replication"},
    {"groups", "shares", "transactions"},
    {"broker", "client", "http", "schema_clients"},
    {"lake"},
    {"spark"},
    {"pipelines", "serving", "capture", "registry", "rest"},
    {"cli", "testing"},
)
HEIGHT = {package: height for height, row in enumerate(ROWS) for package in row}

# `headrace.serdes` resolves its public names lazily, and some of them live in `schema_clients`.
NAMES_OF_USERS = {"serdes"}

# Rows within packages, by the second part of a module's name. Every part is named.
PARTS: dict[str, tuple[set[str], ...]] = {
    "storage": (
        {"config", "flushing", "indexes", "resources", "scanning", "topic_partition"},
        {"checkpoints", "free_space", "producer_state", "rolling", "segment"},
        {"validation"},
        {"leader_epochs", "producer_replay", "producer_snapshots", "segments"},
        {"timestamps"},
        {"log_files", "reading"},
        {"log"},
        {"appending", "directory", "recovery", "retention", "usual_append"},
        {"compaction", "directories"},
    ),
    "broker": (
        {
            "client_quotas",
            "connection_rates",
            "commit_waits",
            "loop_timers",
            "peer_batches",
            "quota_answers",
        },
        {"replication_throttles", "usage"},
        {"metadata"},
        {"authorized_operations", "configs", "coordinators", "metrics", "producer_ids"},
        {
            "deadlines",
            "flushing",
            "frame_buffers",
            "handshakes",
            "isr_changes",
            "leaders",
            "ready_sockets",
            "server_limits",
        },
        {"replica_sessions"},
        {"fetch_sessions", "fetchers", "registration", "topics", "verification"},
        {"audit_writer", "identities"},
        {"markers"},
        {"hosting", "registered_schemas", "shares", "transactions"},
        {"broker", "connection", "direct_call", "maintenance", "produce", "replica_fetch"},
        {"api"},
        {"logins"},
        {"repeated_requests"},
        {"tls_connection"},
        {"dispatch", "server"},
        {"node_status"},
        {"controller_node", "node"},
        {"process"},
    ),
    "groups": (
        {"assignors", "group", "offset_records"},
        {"committed_offsets", "subscriptions"},
        {"state"},
        {"classic", "epochs"},
        {"consumer", "share", "streams"},
        {"classic_requests", "expiry", "offsets"},
        {"shard"},
    ),
    "spark": (
        {"connect", "java", "jars", "launching", "option_names", "option_values"},
        {"side_output", "topic_patterns"},
        {"checkpoints", "compiled_cache", "pools", "requirements", "side_output_files"},
        {"decoding", "pool_preemption", "sink"},
        {"source", "tables"},
        {"compiling", "session"},
        {"archive_writer"},
    ),
    "pipelines": (
        {"loaded_files", "model", "status"},
        {"metrics", "problems"},
        {"declaring", "queries"},
        {"analysing", "templates"},
        {"drawing", "project", "running"},
        {"spark_sessions", "stopping"},
        {"commands", "testing"},
    ),
}

# Packages whose modules still import each other in circles. A package without any must leave.
KNOTTED: set[str] = set()

# Packages of one row that do not import the broker: they connect over the wire, so that they work
# with any Kafka. Only the command that starts a node imports the broker.
PRODUCTS = (
    *("client", "http", "lake", "spark", "pipelines", "serving", "capture", "registry", "rest"),
    *("cli", "testing", "schema_clients"),
)
STRANGERS = {(product, "broker") for product in PRODUCTS} | {
    ("broker", shell) for shell in ("client", "http", "schema_clients")
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
        if (package(found.module), package(found.imported)) in STRANGERS
        and found.module not in STARTS_A_NODE
    ]
    assert [str(found) for found in meetings] == []


@pytest.mark.parametrize("name", sorted(PARTS))
def test_imports_within_a_package_point_downwards(name: str) -> None:
    heights = {part: height for height, row in enumerate(PARTS[name]) for part in row}
    upward = [
        found
        for found in imports()
        if package(found.module) == package(found.imported) == name
        and heights.get(part(found.imported), -1) > heights.get(part(found.module), len(heights))
    ]
    assert [str(found) for found in upward] == []


@pytest.mark.parametrize("name", sorted(PARTS))
def test_every_part_of_a_package_has_a_row(name: str) -> None:
    parts = {part(module) for module in modules() if package(module) == name} - {""}
    assert sorted(part for row in PARTS[name] for part in row) == sorted(parts)


def test_modules_do_not_import_each_other_in_circles() -> None:
    """Imports for type checkers count too: two modules in a circle are understood only together."""
    found = [circle for circle in circles() if package(circle[0]) not in KNOTTED]
    assert found == []


def test_packages_on_the_list_have_circles() -> None:
    knotted = {package(module) for circle in circles() for module in circle}
    assert sorted(KNOTTED - knotted) == [], f"remove from KNOTTED in {__file__}"


def test_products_do_not_import_each_other() -> None:
    products = {"capture", "pipelines", "registry", "rest", "serving"}
    meetings = [
        found
        for found in imports()
        if {package(found.module), package(found.imported)} <= products
        and package(found.module) != package(found.imported)
    ]
    assert [str(found) for found in meetings] == []


@pytest.mark.parametrize("module", ["click", "rich", "confluent_kafka", "cramjam", "http", "json"])
def test_a_node_starts_without(module: str) -> None:
    """Every import costs start-up time and idle memory, so what is rarely used is imported late."""
    program = f"import sys, headrace.broker.node; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@cache
def imports() -> list[Import]:
    """Every import of one Headrace module by another, at the top or inside a function."""
    found = []
    for module, path in modules().items():
        if module != "__init__":
            names = imported_names(ast.parse(path.read_text()))
            found += [Import(module, name, line) for name, line in names]
    return found


@cache
def modules() -> dict[str, Path]:
    """Return the file of each Headrace module; a package is the module in its `__init__.py`."""
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def imported_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "headrace":
            names = [f"headrace.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = sorted({named_module(node.module or "", alias.name) for alias in node.names})
        else:
            continue
        for name in names:
            if name.startswith("headrace."):
                yield name.removeprefix("headrace."), node.lineno


def named_module(module: str, name: str) -> str:
    """The module that `from module import name` imports: a name may be a module itself."""
    path = PACKAGE.parent.joinpath(*module.split("."), name)
    return f"{module}.{name}" if path.is_dir() or path.with_suffix(".py").exists() else module


@cache
def circles() -> list[list[str]]:
    """The sets of modules that import each other, by Tarjan's algorithm."""
    arrows: dict[str, set[str]] = {module: set() for module in modules()}
    for found in (each for each in imports() if each.module not in NAMES_OF_USERS):
        if found.imported != found.module:
            arrows[found.module].add(found.imported)
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    result: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        path.append(module)
        for target in sorted(arrows[module]):
            if target not in order:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in path:
                lowest[module] = min(lowest[module], order[target])
        if lowest[module] == order[module]:
            at = path.index(module)
            circle, path[at:] = sorted(path[at:]), []
            if len(circle) > 1:
                result.append(circle)

    for module in sorted(arrows):
        if module not in order:
            visit(module)
    return result


def package(module: str) -> str:
    return module.partition(".")[0]


def part(module: str) -> str:
    return f"{module}..".split(".")[1]


def height(module: str) -> int:
    return HEIGHT[package(module)]


def holds_code(path: Path) -> bool:
    is_package = path.is_dir() and path.name != "__pycache__"
    return is_package or (path.suffix == ".py" and path.stem not in ("__init__", "__main__"))
