"""`docs/reference/settings.md` has the properties that are defined today."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_current() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "settings.py"))
    written = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert written == tool["render"](), "run python tools/settings.py"
