"""Pages, docstrings, comments and texts keep the rules that `tools/words.py` checks."""

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "headrace"
PAGES = [
    "docs",
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
    *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "examples").rglob("*.md"))),
]

# Folders whose subfolders are checked alone, so that only their own modules are left.
PARENTS = ("tests", "tests/unit", "tests/integration")
SUBFOLDERS = sorted(
    str(path.relative_to(ROOT))
    for parent in PARENTS
    for path in (ROOT / parent).iterdir()
    if path.is_dir() and path.name[:2] != "__"
)
FOLDERS = ["src/pyspark_headrace", "tools", "benchmarks", "examples", "tests", *SUBFOLDERS]
PACKAGES = sorted(
    path.stem
    for path in SOURCE.iterdir()
    if path.suffix in {"", ".py"} and path.stem != "__pycache__"
)


@pytest.mark.parametrize("page", PAGES)
def test_pages_keep_the_rules(page: str) -> None:
    wrong = [str(found) for found in words().check(ROOT / page)]
    assert not wrong, "\n".join(("", *wrong))


@pytest.mark.parametrize("package", PACKAGES)
def test_code_keeps_the_rules(package: str) -> None:
    wrong = findings(package)
    assert not wrong, "\n".join(("", *wrong))


@pytest.mark.parametrize("folder", FOLDERS)
def test_tests_and_tools_keep_the_rules(folder: str) -> None:
    wrong = findings_in(folder)
    assert not wrong, "\n".join(("", *wrong))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("def test_what_is_wrong_is_refused(): ...", "name begins with 'what'"),
        ("def test_an_error_is_told_to_a_client(): ...", "name with 'is told'"),
        ('"""What a reader sees."""', "docstring begins with 'What'"),
        ('"""Whether it is so."""', "docstring begins with 'Whether'"),
        ('"""Build it anew."""', "'anew'"),
        ("# Who reads this waits.", "comment begins with 'Who'"),
        ("x = 'the option is told by the file'", "'is told'"),
        ('"""' + "word " * 31 + '."""', "sentence of 32 words"),
    ],
)
def test_code_that_breaks_a_rule_is_found(text: str, rule: str) -> None:
    found = [str(one) for one in words().code_findings(ROOT / "x.py", text + "\n")]
    assert [one for one in found if rule in one]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("word " * 31 + ".", "sentence of 32 words"),
        ("A short sentence. " * 31, "paragraph of 93 words"),
        ("word " * 25, "line of 125 characters"),
        ("| " + "word " * 41 + "|", "table cell of 41 words"),
        ("Whoever reads it.", "'Whoever'"),
        ("What reads it follows.", "sentence begins with 'What'"),
    ],
)
def test_prose_that_breaks_a_rule_is_found(text: str, rule: str) -> None:
    found = [str(one) for one in words().page_findings(ROOT / "x.md", text + "\n")]
    assert [one for one in found if rule in one]


@pytest.mark.parametrize("kind", ["broker", "topic", "group", "client_metrics"])
def test_texts_of_configs_keep_the_rules(kind: str) -> None:
    module = importlib.import_module(f"headrace.settings.{kind}")
    meanings = {one.documentation for one in getattr(module, f"{kind.upper()}_CONFIGS").values()}
    assert [text for text in sorted(meanings) if words().OPENINGS.match(text)] == []


def findings(package: str) -> list[str]:
    path = SOURCE / package
    return [str(one) for one in words().check(path if path.is_dir() else path.with_suffix(".py"))]


def findings_in(folder: str) -> list[str]:
    paths = sorted((ROOT / folder).glob("*.py")) if folder in PARENTS else [ROOT / folder]
    return [str(found) for path in paths for found in words().check(path)]


@cache
def words() -> Any:
    return load(ROOT / "tools" / "words.py")


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tools_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
