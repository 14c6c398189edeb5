"""The first steps of README.md, typed against a node."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.integration.cli.commands import run
from tests.integration.conftest import StartNode

README = Path(__file__).resolve().parents[2] / "README.md"
TYPED = re.compile(r"^(?:(echo .*) \| )?(headrace (?:produce|consume|topics) .*)$", re.MULTILINE)


def test_the_commands_and_the_consumer_of_the_readme_work(start_node: StartNode) -> None:
    node = start_node()
    text = README.read_text()
    outputs = []
    for feed, command in TYPED.findall(text):
        stdin = subprocess.run(feed, shell=True, capture_output=True, check=True).stdout
        done = run(node.address, *shlex.split(command)[1:], stdin=stdin)
        assert done.code == 0, f"{command}: {done.err}"
        outputs.append(done.out)
    assert outputs[1:2] == ["hello\n"]
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    command = [sys.executable, "-c", program.replace("127.0.0.1:9092", node.address)]
    read = subprocess.run(command, capture_output=True, check=True)
    assert read.stdout == b"b'hello'\n"
    assert run(node.address, "produce", "greetings", stdin=b"again").code == 0
    read = subprocess.run(command, capture_output=True, check=True)
    assert read.stdout == b"b'again'\n", "a later run prints the new records"
