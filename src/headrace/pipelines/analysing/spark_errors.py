"""Spark's errors as one line: without plans, codes and generated names."""

import logging
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOISE = (
    re.compile(r"\s*\n?== (?:SQL|DataFrame|PySpark).*", re.DOTALL),
    re.compile(r";?\s*\n'?[~+!*]?'?[A-Z].*", re.DOTALL),
    re.compile(r"\s*SQLSTATE: \w+"),
)
_POSITION = re.compile(r"[;\s(]*\bline (\d+),? pos(?:ition)? (\d+)\)?;?\s*")
_CODE = re.compile(r"^\s*\[([A-Z0-9_.]+)\]\s*")
_VIEW = re.compile(r"`?__headrace_\d+_(\w+)`?")
_BEFORE_SPARK = (
    "files are read before Spark is started, so make this inside the function of a query, or give"
    " a UDF its type as StringType() instead of 'string'"
)
_ADVICE = {
    "NO_ACTIVE_OR_DEFAULT_SESSION": _BEFORE_SPARK,
    "SESSION_OR_CONTEXT_NOT_EXISTS": _BEFORE_SPARK,
    "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION": (
        "declare the table's keys, so that a group's newer row replaces the older one, or a"
        " watermark, so that a group ends"
    ),
}
"""Advice for errors that lack it in Spark."""
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""The loggers to which PySpark writes each error with the JVM's trace."""


def short_text(error: BaseException) -> str:
    """Return the error as one sentence; for errors outside of Spark with its type."""
    text = str(error)
    code = _CODE.match(text)
    if code is None and not is_from_spark(error):
        first = text.strip().splitlines()[0] if text.strip() else ""
        return f"{type(error).__name__}: {first}" if first else type(error).__name__
    text = _CODE.sub("", text)
    for noise in _NOISE:
        text = noise.sub("", text)
    text = _POSITION.sub(" ", text)
    text = _VIEW.sub(r"\1", text)
    sentence = " ".join(text.split()).rstrip(" ;.")
    advice = _ADVICE.get(code[1]) if code else None
    return f"{sentence}; {advice}" if advice else sentence


def line_of(error: BaseException) -> int | None:
    """Return the line of the query in Spark's error, counted from 1."""
    found = _POSITION.search(str(error))
    return int(found[1]) if found else None


def line_in_folder(error: BaseException, folder: str) -> tuple[str, int] | None:
    """Return the innermost file and line of a pipeline's folder in an error's trace."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(folder):
            return str(path.relative_to(folder)), frame.lineno or 1
    return None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep PySpark from logging errors that are caught and reported here."""
    from pyspark.logger import PySparkLogger

    # Requested by their own class: a plain logger of that name would break PySpark's errors.
    loggers: list[logging.Logger] = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    disabled = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, disabled, strict=True):
            logger.disabled = was


def is_from_spark(error: BaseException) -> bool:
    return type(error).__module__.startswith(("pyspark.", "py4j."))
