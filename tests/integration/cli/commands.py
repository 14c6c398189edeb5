"""Runs `headrace` as a user does, with text in and text out.

Commands that read standard input or move records run as processes of their own; the others run
here, which saves the start of an interpreter for each.
"""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple
from unittest import mock

from headrace.cli.main import main
from tests.processes.nodes import Node

RUN_APART = {"produce", "consume", "bench", "queue", "users"}


class Done(NamedTuple):
    """The result of a command."""

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
    return run(node.address, *arguments, stdin=stdin)


def run(bootstrap: str, *arguments: str, stdin: bytes = b"") -> Done:
    """Run a command against a cluster."""
    environment = {**os.environ, "HEADRACE_BOOTSTRAP": bootstrap}
    if arguments[0] in RUN_APART:
        return _in_a_process(arguments, stdin, environment)
    return _here(arguments, environment)


def ok(node: Node, *arguments: str, stdin: bytes = b"") -> Done:
    """Run a command that must succeed."""
    done = headrace(node, *arguments, stdin=stdin)
    assert done.code == 0, done.err
    return done


def _in_a_process(arguments: tuple[str, ...], stdin: bytes, environment: dict[str, str]) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", *arguments],
        input=stdin,
        capture_output=True,
        timeout=90,
        check=False,
        env=environment,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def _here(arguments: tuple[str, ...], environment: dict[str, str]) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.dict(os.environ, environment), redirect_stdout(out), redirect_stderr(err):
        code = main(arguments)
    return Done(code, out.getvalue(), err.getvalue())
