"""Java's Avro as a process that answers questions, one a line."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from tests.processes.kafka import jars_of

HERE = Path(__file__).parent
POM = HERE / "avro-pom.xml"
PROGRAM = HERE / "java" / "AvroJudge.java"


class AvroJudge(NamedTuple):
    """A running judge."""

    questions: IO[str]
    answers: IO[str]

    def ask(self, *question: str) -> str:
        """The answer to a command with its arguments; it begins with ! where Java refuses."""
        self.questions.write("\t".join(question) + "\n")
        self.questions.flush()
        return self.answers.readline().rstrip("\n")


@contextmanager
def running_judge() -> Iterator[AvroJudge]:
    """The judge, until it is no longer needed. Needs Java and, the first time, Maven."""
    libs = jars_of(POM, "avro")
    command = ["java", "-Xmx256M", "-XX:+UseSerialGC", "-cp", f"{libs}/*", str(PROGRAM)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield AvroJudge(process.stdin, process.stdout)
        process.stdin.close()
        assert process.wait(60) == 0
