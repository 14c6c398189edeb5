"""`docs/reference/pipeline-options.md` has the options that are defined today."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_current() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "pipeline_options.py"))
    written = (ROOT / "docs" / "reference" / "pipeline-options.md").read_text()
    assert written == tool["render"](), "run python tools/pipeline_options.py"
