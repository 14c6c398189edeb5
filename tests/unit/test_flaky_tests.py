"""The list of known flaky tests stays short: entries expire, and name tests that exist."""

import datetime as dt
import re
from pathlib import Path

from tests.flaky import flaky_tests

ROOT = Path(__file__).resolve().parents[2]


def test_no_flaky_test_is_past_its_day() -> None:
    today = dt.datetime.now(dt.UTC).date()
    assert [test.id for test in flaky_tests() if test.expires < today] == []


def test_every_flaky_test_exists() -> None:
    missing = [test.id for test in flaky_tests() if not exists(test.id)]
    assert missing == []


def test_every_flaky_test_has_a_reason() -> None:
    assert [test.id for test in flaky_tests() if len(test.reason.split()) < 5] == []


def exists(test_id: str) -> bool:
    path, _, name = test_id.partition("::")
    file = ROOT / path
    return file.is_file() and bool(re.search(rf"def {name}\(", file.read_text()))
