"""The examples of docs/guides/testing.md, run as a user's own tests."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "testing.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_every_example_of_the_page_passes(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for number, example in enumerate(EXAMPLES):
        pytester.makepyfile(**{f"test_example_{number}": example})
    result = pytester.runpytest_subprocess(
        "-q", "--strict-markers", "-p", "headrace.testing.plugin"
    )
    result.assert_outcomes(passed="\n".join(EXAMPLES).count("def test_"))
