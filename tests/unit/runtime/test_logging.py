"""The two formats of the log."""

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
        "leadership taken", extra={"topic": "orders", "partition": 3, "epoch": 7}
    )
    line = stream.getvalue()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", line[:23])
    assert line[23:] == " INFO broker.node: leadership taken (topic=orders, partition=3, epoch=7)\n"


def test_an_event_without_fields_has_no_parentheses() -> None:
    stream = written("text")
    logging.getLogger("headrace.broker.node").info("stopped")
    assert stream.getvalue().endswith("INFO broker.node: stopped\n")


def test_a_text_record_is_one_line_for_any_value_of_a_field() -> None:
    """A client chooses its client id, and must not be able to write a log line of its own."""
    stream = written("text")
    forged = "me\n2026-03-01 12:01:33.250 ERROR broker.node: failed\u2028\x1b[2J"
    logging.getLogger("headrace").info("connection closed\r", extra={"client_id": forged})
    assert len(stream.getvalue().splitlines()) == 1
    assert "(client_id=me\\n2026" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


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
    settings = {"user": "ada", "SSL.Key.Password": "hunter2"}
    extra = {"sasl_password": "hunter2", "settings": settings}
    logging.getLogger("headrace").info("in", extra=extra)
    assert "ada" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()
    assert "[hidden]" in stream.getvalue()


def test_parts_have_levels_of_their_own() -> None:
    stream = written("text", "WARNING", "storage=debug")
    logging.getLogger("headrace.broker").info("not this")
    logging.getLogger("headrace.storage.log").debug("but this")
    logging.getLogger("some.library").info("nor this")
    assert stream.getvalue().endswith("DEBUG storage.log: but this\n")
    assert stream.getvalue().count("\n") == 1
