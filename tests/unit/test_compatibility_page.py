"""`docs/compatibility.md` is what the table of APIs says today."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_up_to_date() -> None:
    """OPS-1: what we speak, and what we do not yet, is written down as it is. Else: `make docs`."""
    tool = runpy.run_path(str(ROOT / "tools" / "compatibility.py"))
    assert (ROOT / "docs" / "compatibility.md").read_text() == tool["render"]()


def test_every_api_kafka_has_is_served_or_listed_as_missing() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "compatibility.py"))
    page = tool["render"]()
    served, _, missing = page.partition("## Not yet")
    for key, (first, last) in tool["KAFKA"].items():
        row = f"| {key} |"
        assert (row in served) != (row in missing)
        entry = tool["APIS"].get(key)
        assert entry is None or entry.advertised == (first, last)
