"""`make requirements` counts parts of a requirement separately."""

import runpy
from pathlib import Path

import pytest

TOOL = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools" / "requirements.py"))


@pytest.mark.parametrize(
    ("docstring", "names"),
    [
        ("LOG-11: and more.", ["LOG-11"]),
        ("LOG-1(b), PRD-1: one.", ["LOG-1(b)", "PRD-1"]),
        ("LOG-1(a) and nothing else", ["LOG-1"]),
        ("LOG-1 (a)(c)", ["LOG-1", "LOG-1(c)"]),
        ("LOG-1..3", ["LOG-1", "LOG-2", "LOG-3"]),
        ("KIP-392 is not ours", []),
    ],
)
def test_a_docstring_names_requirements_and_parts(docstring: str, names: list[str]) -> None:
    assert TOOL["requirements_in"](docstring, {"LOG", "PRD"}) == names


def test_a_requirement_is_proven_when_all_its_parts_are(capsys: pytest.CaptureFixture[str]) -> None:
    titles = {"LOG-1": "one", "LOG-1(b)": "its part", "LOG-2": "two", "LOG-3": "three"}
    TOOL["print_summary"](titles, {"LOG-1": ["t"], "LOG-2": ["t"]})
    assert capsys.readouterr().out == (
        "\n1 of 3 requirements are proven by tests in all their parts, 1 in some of them.\n"
    )
    TOOL["print_summary"](titles, {"LOG-1": ["t"], "LOG-1(b)": ["t"], "LOG-2": ["t"]})
    assert "2 of 3 requirements are proven" in capsys.readouterr().out
