"""`docs/reference/compatibility.md` agrees with the table of APIs."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_up_to_date() -> None:
    """OPS-1: what we speak, and what we do not yet, is written down as it is. Else: `make docs`."""
    tool = runpy.run_path(str(ROOT / "tools" / "compatibility.py"))
    assert (ROOT / "docs" / "reference" / "compatibility.md").read_text() == tool["render"]()


def test_every_api_kafka_has_is_served_or_listed_as_missing() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "compatibility.py"))
    rows = [line.split(" | ") for line in tool["render"]().splitlines() if line.startswith("| ")]
    keys = [int(row[0].removeprefix("| ")) for row in rows if row[0][2:].isdigit()]
    assert len(keys) == len(set(keys))
    assert set(tool["KAFKA"]) <= set(keys)


def test_served_requests_have_the_versions_of_kafka() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "compatibility.py"))
    for key, entry in tool["APIS"].items():
        assert entry.advertised == tool["KAFKA"].get(key, (0, 0))


def test_an_engine_is_called_tried_only_where_a_test_is_named_that_there_is() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "compatibility.py"))
    tried = {test for _, _, test in tool["ENGINES"]} - {None}
    assert tried
    assert {test for test in tried if not (ROOT / "tests" / test).is_file()} == set()
