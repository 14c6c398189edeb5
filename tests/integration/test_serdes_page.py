"""The examples of docs/guides/serdes.md and of examples/schemas, run unchanged."""

import re
import subprocess
import sys
from pathlib import Path

from tests.clients.librdkafka import create_topic
from tests.processes.nodes import Node
from tests.processes.registries import running_registry

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guides" / "serdes.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def run(program: Path, *arguments: str) -> str:
    """Return the output of a program that succeeds without a warning."""
    done = subprocess.run(
        [sys.executable, program, *arguments], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_example_of_the_page_works(node: Node, tmp_path: Path) -> None:
    """SCH-9, SCH-10: the examples assert their results."""
    for topic in ("purchases", "orders-2"):
        create_topic(node, name=topic)
    program = tmp_path / "page.py"
    with running_registry(node.address, tmp_path, "serdes-page") as registry:
        text = "\n".join(EXAMPLES).replace("127.0.0.1:9092", node.address)
        program.write_text(text.replace("http://127.0.0.1:8081", registry.url))
        told = run(program)
    assert told == "rule has_id: the value does not meet message.id > 0\n"


def test_the_example_reads_orders_as_their_next_version(
    node: Node, topic: str, tmp_path: Path
) -> None:
    """SCH-10"""
    program = ROOT / "examples" / "schemas" / "orders.py"
    with running_registry(node.address, tmp_path, "serdes-example") as registry:
        cluster = ("--bootstrap", node.address, "--registry", registry.url)
        told = run(program, *cluster, "--topic", topic)
    assert told == "1 ada 12.00 EUR\n2 grace 4.50 EUR\n"
