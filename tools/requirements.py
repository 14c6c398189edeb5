"""Prints which requirements are proven by which tests, and which are not yet.

The list is `docs/internals/requirements.md`. A test proves a requirement by naming it in its
docstring, so the state of the product is read from the tests.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTED = re.compile(r"^ *- ([A-Z0-9]{3}-\d+(?:\([b-z]\))?) (.+)$", re.MULTILINE)
NAMED = re.compile(r"\b([A-Z0-9]{3})-(\d+)(?:\.\.(\d+))?((?: ?\([a-z]\))*)")
PART = re.compile(r"\(([a-z])\)")


def main() -> int:
    """Print the table; fail when a test names a requirement that is not listed."""
    arguments = parse_arguments()
    titles = dict(LISTED.findall((ROOT / "docs" / "internals" / "requirements.md").read_text()))
    proofs = collect(ROOT / "tests", areas={name.partition("-")[0] for name in titles})
    for name, title in titles.items():
        print_requirement(name, title, proofs.get(name, []), arguments)
    print_summary(titles, proofs)
    unknown = sorted(proofs.keys() - titles.keys())
    for name in unknown:
        print(f"docs/internals/requirements.md lacks {name}, named in {', '.join(proofs[name])}")
    return 1 if unknown else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missing", action="store_true", help="print only what is not proven")
    parser.add_argument("--brief", action="store_true", help="count the tests, do not name them")
    return parser.parse_args()


def collect(tests: Path, areas: set[str]) -> dict[str, list[str]]:
    """Which tests (`file::name`) name each requirement; other names (KIP-392) are not ours."""
    proofs: dict[str, list[str]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        for test, docstring in docstrings(ast.parse(path.read_text())):
            for name in requirements_in(docstring, areas):
                proofs.setdefault(name, []).append(f"{path.relative_to(tests.parent)}::{test}")
    return proofs


def docstrings(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Every test function's name and docstring; a class's docstring counts for its tests."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            text = ast.get_docstring(node)
            if text and node.name.lower().startswith("test"):
                yield node.name, text


def requirements_in(docstring: str, areas: set[str]) -> list[str]:
    """Return the names in a docstring, each once; `LOG-1..3` means all three.

    `LOG-1(b)` is a part of its own; `LOG-1(a)` and `LOG-1` are the first part.
    """
    names = []
    for area, first, last, parts in NAMED.findall(docstring):
        if area not in areas:
            continue
        for number in range(int(first), int(last or first) + 1):
            letters = PART.findall(parts) or ["a"]
            names += [f"{area}-{number}" + ("" if one == "a" else f"({one})") for one in letters]
    return sorted(set(names))


def print_requirement(
    name: str, title: str, tests: list[str], arguments: argparse.Namespace
) -> None:
    if tests and arguments.missing:
        return
    count = f"{len(tests)} test{'s' if len(tests) != 1 else ''}" if tests else "not yet"
    print(f"{name:10} {count:9} {title}")
    if not arguments.brief:
        for test in tests:
            print(f"{'':21}{test}")


def print_summary(titles: dict[str, str], proofs: dict[str, list[str]]) -> None:
    """A requirement is proven when it and every part of it is."""
    whole = {name.partition("(")[0] for name in titles}
    lacking = {name.partition("(")[0] for name in titles if name not in proofs}
    begun = {name.partition("(")[0] for name in proofs if name in titles} & lacking
    print(
        f"\n{len(whole - lacking)} of {len(whole)} requirements are proven by tests in all their "
        f"parts, {len(begun)} in some of them."
    )


if __name__ == "__main__":
    sys.exit(main())
