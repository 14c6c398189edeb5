"""`docs/internals/logging.md` lists the events that the code logs, with their levels."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]

# Areas in which some log calls still have placeholders in their text. A clean area must leave.
NOT_YET: set[str] = set()


def test_the_page_lists_all_events() -> None:
    differences = tool().differences((ROOT / "docs" / "internals" / "logging.md").read_text())
    assert not differences, "\n".join(("", *differences))


def test_log_calls_have_constant_texts() -> None:
    found = tool().calls_without_event()
    wrong = [place for area, places in found.items() if area not in NOT_YET for place in places]
    assert not wrong, f"move the values of these log calls into extra=: {wrong}"


def test_warnings_and_errors_name_the_affected_thing() -> None:
    assert tool().calls_without_fields() == []


def test_areas_on_the_list_are_not_clean() -> None:
    clean = sorted(NOT_YET - tool().calls_without_event().keys())
    assert not clean, f"remove from NOT_YET in {__file__}: {clean}"


def test_differences_name_the_row() -> None:
    page = "## Broker (`broker`)\n| an event of yesterday | INFO | Nothing. |\n"
    differences = tool().differences(page)
    assert any("remove" in one and "an event of yesterday" in one for one in differences)
    assert any("add" in one and "| topic deleted | INFO |" in one for one in differences)


@cache
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("log_events", ROOT / "tools" / "log_events.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
