"""Kafka's tools in one JVM, because each start of a JVM takes a second or two."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from tests.processes.kafka import MAIN_CLASSES, TOOL_FLAGS, KafkaRelease

PROGRAM = Path(__file__).with_name("java") / "KafkaTools.java"


class Shown(NamedTuple):
    """The outcome of a tool: its exit code, and what it printed on both streams."""

    code: int
    text: str


class KafkaTools(NamedTuple):
    """A JVM that runs one tool after the other."""

    commands: IO[bytes]
    answers: IO[bytes]

    def run(self, script: str, *arguments: str) -> str:
        """Run a tool that must succeed, and return what it printed."""
        shown = self.try_run(script, *arguments)
        if shown.code != 0:
            raise AssertionError(f"{script} {arguments} ended with {shown.code}:\n{shown.text}")
        return shown.text

    def try_run(self, script: str, *arguments: str) -> Shown:
        """Run a tool and return how it ended."""
        line = "\t".join((MAIN_CLASSES[script], *arguments))
        self.commands.write(line.encode() + b"\n")
        self.commands.flush()
        head = self.answers.readline().split()
        assert len(head) == 2, f"the JVM ended while it ran {script}"
        return Shown(int(head[0]), self.answers.read(int(head[1])).decode())


@contextmanager
def running_tools(release: KafkaRelease) -> Iterator[KafkaTools]:
    """The JVM, until it is no longer needed."""
    command = ["java", *TOOL_FLAGS, *release.sooner, "-cp", f"{release.libs}/*", str(PROGRAM)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield KafkaTools(process.stdin, process.stdout)
        finally:
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
