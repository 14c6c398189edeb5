"""Whether a flow that has failed is started again, and when."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from headrace.pipelines.analysing.spark_errors import short_text

ATTEMPTS_MAX = 6
BUSY_ATTEMPTS_MAX = 60
"""With waits of half a minute at most, some half an hour in which a machine may come to rest."""
_FIRST_WAIT_S, _WAIT_S_MAX, _DOUBLINGS_MAX = 1.0, 30.0, 5
_ERROR_LINE = re.compile(r"(?:^|[\s:])((?:headrace\.)[\w.]+\.)(\w+): ([^\n]+)", re.MULTILINE)
_PLAIN_LINE = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception)): ([^\n]+)", re.MULTILINE)
_TRACE = "Traceback (most recent call last)"
_TRACED = re.compile(
    re.escape(_TRACE) + r":\n(?:[ \t][^\n]*\n|\n)*([^\W\d][\w.<>]*)(?::[ \t]*([^\n]*))?(?=\n|\Z)"
    r"((?:\n(?!\s|SQLSTATE|Caused by|JVM stacktrace|During |The above |\S*Traceback)[^\n]*)*)"
)
"""The error below the lines of a Python trace, whatever its class, and its further lines."""
_TEXT_CHARS_MAX = 300

_BUSY = "MachineTooBusy"
_NOT_CONNECTED = re.compile(r"Python worker (?:failed )?to connect back")
"""Spark gives a new Python process ten seconds to call back, and has no setting for it."""

_NO_ROOM = re.compile(r"(?:No space left on device|Disk quota exceeded)(?:: '[^'\n]+')?")
"""What Spark meets in a checkpoint, or with its own files, on a disk that is full."""

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
"""Errors that a second try meets again: someone has to do something first."""


AWAY = frozenset({"BrokerUnreachable", "ConnectionLost", "HungUp", "NoAnswer", "ServerAway"})
"""Errors that end by themselves, sooner or later: someone else is away, and nothing is wrong here.
So a run that has no end of its own goes on asking."""


MISTAKES = frozenset(
    {
        *("ArrowInvalid", "ArrowNotImplementedError", "ArrowTypeError"),
        *("AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "SyntaxError"),
        *("NotImplementedError", "OverflowError", "TypeError", "UnboundLocalError"),
    }
)
"""Errors of Python and Arrow that speak of code or of values: these are the same next time."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a query has ended, in as few words as tell it."""

    kind: str
    text: str
    is_traced: bool = False
    """Whether it is an error of other code than ours, so that one wants to see its trace."""

    @property
    def is_final(self) -> bool:
        return self.kind in FINAL or (self.is_traced and self.kind in MISTAKES)

    def told(self, log: Path) -> str:
        """The text, and where the trace is, if that helps and Spark has written one."""
        is_there = self.is_traced and log.exists()
        return f"{self.text}; its trace is in {log}" if is_there else self.text

    @property
    def is_of_load(self) -> bool:
        """Whether nothing is wrong but that the machine has too much to do."""
        return self.kind == _BUSY

    def attempts_max(self, *, is_once: bool) -> int | None:
        """How often a flow may fail by it in turn; None for as long as its run goes on."""
        if self.is_final:
            return 1
        if self.kind in AWAY and not is_once:
            return None
        return BUSY_ATTEMPTS_MAX if self.is_of_load else ATTEMPTS_MAX


def failure_of(message: str) -> Failure:
    """The error that counts in what Spark reports: ours if one is in it, else that of a trace.

    Spark wraps what a Python function or source has raised into its own message, with the traces of
    both worlds; our errors say what to do, so the innermost of them is what a user should read.
    """
    found = _ERROR_LINE.findall(message)
    if found:
        _, kind, text = found[-1]
        return Failure(kind, text.strip())
    if _NOT_CONNECTED.search(message):
        text = (
            "the machine is too busy: Spark has waited ten seconds in vain for a Python process"
            " to start; give it more cores or less to do. If it is idle, the process's own error"
            " stands before this"
        )
        return Failure(_BUSY, text)
    if full := _NO_ROOM.search(message):
        text = (
            "a disk is full, most likely that of the lake or of Spark's temporary files:"
            f" {full[0]}. No row is lost or comes twice; make room, and run again"
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
    """An error as one line; where its first ends with a colon, what it is about comes below."""
    text = " ".join(f"{first} {rest}".split()) if first.rstrip().endswith(":") else first.strip()
    if len(text) > _TEXT_CHARS_MAX:
        text = f"{text[:_TEXT_CHARS_MAX]} ..."
    return Failure(kind, f"{kind}: {text}" if text else kind, is_traced=True)


def told(error: BaseException) -> str:
    """One sentence for what Spark has raised: the error in a Python trace, else Spark's own."""
    message = str(error)
    return failure_of(message).text if _TRACE in message else short_text(error)


@dataclass(slots=True)
class Restarts:
    """How often a flow has failed since it last wrote a batch."""

    failures: int = 0
    last_batch: int = -1
    not_before: float = field(default=0.0)
    chance: Callable[[], float] = random.random
    """A number from 0 to 1, by which flows that a busy machine has ended do not all come again
    at one moment."""

    def on_failure(self, failure: Failure, batch: int, now: float, *, is_once: bool) -> bool:
        """Note a failure at some batch; whether the flow is to be started again, later."""
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
