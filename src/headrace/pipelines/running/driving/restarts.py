"""The restart of failed flows: final errors, limits and waits."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from headrace.pipelines.analysing.spark_errors import short_text

ATTEMPTS_MAX = 6
BUSY_ATTEMPTS_MAX = 60
"""At most half a minute apart: half an hour in total for a machine to become less busy."""
_FIRST_WAIT_S, _WAIT_S_MAX, _DOUBLINGS_MAX = 1.0, 30.0, 5
_ERROR_LINE = re.compile(r"(?:^|[\s:])((?:headrace\.)[\w.]+\.)(\w+): ([^\n]+)", re.MULTILINE)
_PLAIN_LINE = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception)): ([^\n]+)", re.MULTILINE)
_TRACE = "Traceback (most recent call last)"
_TRACED = re.compile(
    re.escape(_TRACE) + r":\n(?:[ \t][^\n]*\n|\n)*([^\W\d][\w.<>]*)(?::[ \t]*([^\n]*))?(?=\n|\Z)"
    r"((?:\n(?!\s|SQLSTATE|Caused by|JVM stacktrace|During |The above |\S*Traceback)[^\n]*)*)"
)
"""The error below the lines of a Python trace, of any class, and its further lines."""
_TEXT_CHARS_MAX = 300

_JVM_LOST = re.compile(r"An error occurred while calling \S+|Answer from Java side is empty")
"""The whole of py4j's error after the JVM has ended: errors of Java have a text behind it."""

JVM_GONE = (ConnectionRefusedError, ConnectionResetError)
"""Errors of py4j's socket; the clients of brokers and registries have errors of their own."""

_BUSY = "MachineTooBusy"
_NOT_CONNECTED = re.compile(r"Python worker (?:failed )?to connect back")
"""Spark gives a new Python process ten seconds to call back, and has no setting for it."""

_NO_ROOM = re.compile(r"(?:No space left on device|Disk quota exceeded)(?:: '[^'\n]+')?")
"""Spark's error if the disk of a checkpoint or of its own files is full."""

FINAL = frozenset(
    {
        "BucketTooLarge",
        "CheckpointDamaged",
        "DataLost",
        "ExpectationFailed",
        "IncompatibleSchema",
        "InvalidChange",
        "InvalidOption",
        "NoSuchTable",
        "NoSuchTopic",
        "PipelineError",
        "PromotionRefused",
        "StateDisagrees",
        "TableLost",
        "TableRewritten",
        "TopicRecreated",
        "VersionGone",
    }
)
"""Errors that recur after a restart until a person corrects the cause."""


AWAY = frozenset({"BrokerUnreachable", "ConnectionLost", "HungUp", "NoAnswer", "ServerAway"})
"""Errors of an unreachable server, which end without a change to the pipeline.

A continuous run retries them without a limit.
"""


MISTAKES = frozenset(
    {
        *("ArrowInvalid", "ArrowNotImplementedError", "ArrowTypeError"),
        *("AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "SyntaxError"),
        *("NotImplementedError", "OverflowError", "TypeError", "UnboundLocalError"),
    }
)
"""Errors of Python and Arrow about code or values, which recur after a restart."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a query has ended, as a short text."""

    kind: str
    text: str
    is_traced: bool = False
    """True for an error outside of headrace, whose trace is of interest."""

    @property
    def is_final(self) -> bool:
        return self.kind in FINAL or (self.is_traced and self.kind in MISTAKES)

    def described(self, log: Path) -> str:
        """Return the text, and the file with the trace if Spark has written one."""
        is_there = self.is_traced and log.exists()
        return f"{self.text}; its trace is in {log}" if is_there else self.text

    @property
    def is_of_load(self) -> bool:
        """Return whether the only reason is that the machine is too busy."""
        return self.kind == _BUSY

    def attempts_max(self, *, is_once: bool) -> int | None:
        """Return the allowed number of consecutive failures; None means no limit."""
        if self.is_final:
            return 1
        if self.kind in AWAY and not is_once:
            return None
        return BUSY_ATTEMPTS_MAX if self.is_of_load else ATTEMPTS_MAX


def failure_of(message: str) -> Failure:
    """Return the decisive error in Spark's report: one of headrace, or that of a trace.

    Spark wraps an error of a Python function or source into its own message, with the traces of
    both sides. Errors of headrace have advice, so the innermost of them is the one for the user.
    """
    found = _ERROR_LINE.findall(message)
    if found:
        _, kind, text = found[-1]
        return Failure(kind, text.strip())
    if _NOT_CONNECTED.search(message):
        text = (
            "the machine is too busy: a Python process of Spark did not start within ten seconds;"
            " give the machine more cores or less to do. If it is idle, the process's own error"
            " is above"
        )
        return Failure(_BUSY, text)
    if full := _NO_ROOM.search(message):
        text = (
            "a disk is full, most likely that of the lake or of Spark's temporary files:"
            f" {full[0]}. No row is lost or duplicated; make room, and run again"
        )
        return Failure("NoRoom", text)
    if traced := _TRACED.findall(message):
        name, first, rest = traced[-1]
        return _of_trace(name.rpartition(".")[2], first, rest)
    plain = _PLAIN_LINE.findall(message)
    if plain:
        kind, text = plain[-1]
        return Failure(kind, f"{kind}: {text.strip()}")
    if "StatusCode.UNAVAILABLE" in message:
        text = "the Spark Connect server does not answer; start it and run again"
        return Failure("ServerAway", text)
    lines = message.strip().splitlines()
    return Failure("", lines[0] if lines else "ended without a message")


def _of_trace(kind: str, first: str, rest: str) -> Failure:
    """Return an error as one line; a first line with a colon at its end continues below."""
    text = " ".join(f"{first} {rest}".split()) if first.rstrip().endswith(":") else first.strip()
    if len(text) > _TEXT_CHARS_MAX:
        text = f"{text[:_TEXT_CHARS_MAX]} ..."
    return Failure(kind, f"{kind}: {text}" if text else kind, is_traced=True)


def one_sentence(error: BaseException) -> str:
    """Return Spark's error as one sentence: the error in a Python trace, or Spark's own."""
    message = str(error)
    if isinstance(error, JVM_GONE) or _JVM_LOST.fullmatch(message):
        return "its JVM has ended, most often for lack of memory"
    return failure_of(message).text if _TRACE in message else short_text(error)


@dataclass(slots=True)
class Restarts:
    """The failures of a flow since its last written batch."""

    failures: int = 0
    last_batch: int = -1
    not_before: float = field(default=0.0)
    chance: Callable[[], float] = random.random
    """A number from 0 to 1 that spreads the restarts of flows that a busy machine has ended."""

    def on_failure(self, failure: Failure, batch: int, now: float, *, is_once: bool) -> bool:
        """Record a failure at some batch; return whether the flow is to be restarted."""
        if batch > self.last_batch:
            self.failures = 0
            self.last_batch = batch
        self.failures += 1
        attempts_max = failure.attempts_max(is_once=is_once)
        if attempts_max is not None and self.failures >= attempts_max:
            return False
        wait_s = min(_FIRST_WAIT_S * 2 ** min(self.failures - 1, _DOUBLINGS_MAX), _WAIT_S_MAX)
        if failure.is_of_load:
            wait_s *= (1 + self.chance()) / 2
        self.not_before = now + wait_s
        return True
