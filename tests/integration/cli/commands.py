"""Runs `headrace` as a user does: as a process, with text in and text out."""

import json
import subprocess
import sys
from typing import Any, NamedTuple

from tests.nodes import Node


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def headrace(node: Node, *arguments: str, stdin: bytes = b"") -> Done:
    """Run a command against a node."""
    command = [sys.executable, "-m", "headrace.cli.main", *arguments]
    done = subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        timeout=90,
        check=False,
        env={"HEADRACE_BOOTSTRAP": node.address, "PYTHONPATH": ":".join(sys.path)},
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def ok(node: Node, *arguments: str, stdin: bytes = b"") -> Done:
    """Run a command that must succeed."""
    done = headrace(node, *arguments, stdin=stdin)
    assert done.code == 0, done.err
    return done
