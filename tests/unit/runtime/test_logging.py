"""The two shapes of the log."""

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from headrace.runtime.logging import configure


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("headrace", "headrace.storage"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def written(format: str, *levels: str) -> io.StringIO:
    stream = io.StringIO()
    configure(format, levels or ("INFO",), stream)
    return stream


def test_people_read_time_level_part_message_and_fields() -> None:
    stream = written("text")
    logging.getLogger("headrace.broker.node").info(
        "took %s over", "orders", extra={"partition": 3, "epoch": 7}
    )
    line = stream.getvalue()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", line[:23])
    assert line[23:] == " INFO broker.node: took orders over partition=3 epoch=7\n"


def test_programs_read_one_object_per_line() -> None:
    stream = written("json")
    logging.getLogger("headrace.storage").warning(
        'a "quoted"\nline', extra={"path": object, "level": "not the level"}
    )
    entry = json.loads(stream.getvalue())
    assert entry["level"] == "WARNING"
    assert entry["logger"] == "storage"
    assert entry["message"] == 'a "quoted"\nline'
    assert "object" in entry["path"]
    assert entry["time"].endswith("Z")
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize("format", ["text", "json"])
def test_errors_carry_their_traceback(format: str) -> None:
    stream = written(format)
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("headrace").exception("failed")
    assert "ValueError: broken" in stream.getvalue()


@pytest.mark.parametrize("format", ["text", "json"])
def test_secrets_are_hidden(format: str) -> None:
    stream = written(format)
    logging.getLogger("headrace").info("in", extra={"sasl_password": "hunter2"})
    assert "hunter2" not in stream.getvalue()
    assert "[hidden]" in stream.getvalue()


def test_parts_have_levels_of_their_own() -> None:
    stream = written("text", "WARNING", "storage=debug")
    logging.getLogger("headrace.broker").info("not this")
    logging.getLogger("headrace.storage.log").debug("but this")
    logging.getLogger("some.library").info("nor this")
    assert stream.getvalue().endswith("DEBUG storage.log: but this\n")
    assert stream.getvalue().count("\n") == 1
