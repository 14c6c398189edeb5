"""The first example of each page runs as written, with the addresses and folders of the test."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.lake.catalog import Lake
from tests.builders.lake_services import append
from tests.integration.conftest import StartNode
from tests.processes.nodes import HOST, free_port
from tests.processes.registries import running_registry

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RUN_ELSEWHERE = {
    "guides/pipelines/correct.md": "spark/test_pipelines_page.py",
    "guides/pipelines/declare.md": "unit/test_spark_pages.py",
    "guides/serdes.md": "integration/test_serdes_page.py",
    "guides/spark-cluster.md": "spark/test_page_openings.py",
    "guides/spark-source.md": "spark/test_page_openings.py",
    "guides/testing.md": "integration/test_testing_page.py",
    "internals/http-kit.md": "unit/http/test_product.py",
    "reference/pipeline-options.md": "unit/test_spark_pages.py",
    "reference/pipelines.md": "unit/test_spark_pages.py",
    "tutorials/first-pipeline.md": "spark/test_pipelines_page.py",
}
"""Pages whose first example another test runs."""
NOT_RUN = {
    "internals/decisions/index.md": "The page is a table of decisions, without an example.",
    "internals/cluster-tests.md": "`make chaos` takes minutes; `test_chaos.py` runs a short storm.",
    "internals/performance.md": "`make bench` takes minutes and overwrites the page.",
    "internals/requirements.md": "`make requirements` needs a `.venv` of the checkout.",
}
"""Pages whose first example no test can run, each with the reason."""
EXAMPLE = re.compile(r"^```(sh|python|)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SERVER = re.compile(r"headrace (up|registry|rest|serve)\b")
READY = re.compile("is ready on|serves tables on")
PORTS = ("8081", "8082", "8090", "9644")
PROGRAMS = Path(sys.executable).parent


def pages() -> Iterator[str]:
    for page in sorted(DOCS.rglob("*.md")):
        name = str(page.relative_to(DOCS))
        is_decision = re.match(r"\d", page.name)
        if not is_decision and name not in RUN_ELSEWHERE and name not in NOT_RUN:
            yield name


def test_pages_that_this_file_leaves_out_exist_and_their_tests_name_them() -> None:
    for page, test in RUN_ELSEWHERE.items():
        assert (DOCS / page).exists()
        text = (ROOT / "tests" / test).read_text()
        assert Path(page).stem in text or Path(page).name in text
    assert [page for page in NOT_RUN if not (DOCS / page).exists()] == []


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("only_headrace")
@pytest.mark.parametrize("page", sorted(pages()))
def test_the_first_example_of_a_page_runs(page: str, start_node: StartNode, tmp_path: Path) -> None:
    found = EXAMPLE.search((DOCS / page).read_text())
    assert found is not None
    language, example = found.groups()
    here = folder(tmp_path)
    with ExitStack() as stack:
        if "headrace up" in example:
            address = f"{HOST}:{free_port()}"
        else:
            node = start_node()
            (here / "data").symlink_to(node.data)
            address = node.address
        ports = {port: str(free_port()) for port in PORTS}
        if "--registry" in example:
            registry = stack.enter_context(running_registry(address, tmp_path, "openings"))
            ports["8081"] = registry.url.rpartition(":")[2]
        text = example.replace("headrace up", f"headrace up --listen {address}")
        text = text.replace("headrace serve", f"headrace serve --listen {HOST}:8090")
        text = re.sub(rf"\b({'|'.join(PORTS)})\b", lambda port: ports[port[1]], text)
        text = re.sub(r"(localhost|127\.0\.0\.1):9092", address, text)
        typist = Typist(address, here)
        if language == "python":
            typist.run([sys.executable, "-c", text])
            return
        for command in commands(text.replace("/var/lib/headrace", "here")):
            if SERVER.match(command):
                stack.enter_context(typist.server(command))
            else:
                typist.type(command)


def folder(tmp_path: Path) -> Path:
    """Make a folder to type in, with the files that examples of pages name."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "server.properties").write_text("num.partitions=3\n")
    (here / "users.txt").write_text("ada=secret\n")
    rows = pa.table({"minute": ["2026-03-01 12:01"], "action": ["read"], "requests": [3]})
    append(Lake(here / "lake").create("refined.traffic_by_minute", rows.schema), rows)
    return here


def commands(example: str) -> Iterator[str]:
    """Yield the commands of an example; a block of no language also shows their output."""
    lines = example.replace("\\\n", " ").splitlines()
    is_session = lines[0].startswith("$ ")
    for line in lines:
        if line.strip() and (not is_session or line.startswith("$ ")):
            yield line.removeprefix("$ ").partition("   #")[0]


class Typist:
    """A user in a folder, with a broker at an address."""

    def __init__(self, address: str, here: Path) -> None:
        self.address = address
        self.here = here
        self.environment = {
            **os.environ,
            "HEADRACE_BOOTSTRAP": address,
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        }

    def type(self, command: str) -> None:
        """Run a command of a shell; curl fails on an answer that is an error."""
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            self.environment[name] = value
            return
        if re.search(r"(topic|describe) orders|data/orders", command):
            self.run(["headrace", "topics", "create", "orders"])
        self.run(
            ["sh", "-c", command.replace("curl ", "curl --fail-with-body --no-progress-meter ")]
        )

    def run(self, words: list[str]) -> None:
        done = subprocess.run(
            words, cwd=self.here, env=self.environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"

    @contextmanager
    def server(self, command: str) -> Iterator[None]:
        """Run a program until the block ends; wait until it is ready."""
        with subprocess.Popen(
            shlex.split(command),
            cwd=self.here,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            try:
                assert any(READY.search(line) for line in process.stdout)
                yield
            finally:
                process.terminate()
