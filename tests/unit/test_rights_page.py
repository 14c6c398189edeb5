"""`docs/reference/acls.md` has the rights that handlers declare today."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_current() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "rights.py"))
    written = (ROOT / "docs" / "reference" / "acls.md").read_text()
    assert written == tool["render"](), "run python tools/rights.py"
