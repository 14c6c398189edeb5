"""The list of known flaky tests in `tests/flaky.toml`."""

import datetime as dt
import tomllib
from functools import cache
from pathlib import Path

import msgspec

LIST = Path(__file__).with_name("flaky.toml")


class FlakyTest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A test that may fail without a bug of ours, until the day by which it must be fixed."""

    id: str
    reason: str
    expires: dt.date


@cache
def flaky_tests() -> tuple[FlakyTest, ...]:
    """Read the list."""
    entries = tomllib.loads(LIST.read_text()).get("test", [])
    return tuple(msgspec.convert(entry, FlakyTest) for entry in entries)
