"""Checks the prose of the project against the rules that a program can hold.

Pages, docstrings, comments, texts in the code and names of tests are read. Each finding names
file, line and rule; CONTRIBUTING.md has the rules in words.
`python tools/words.py src/headrace/groups` checks one part.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SENTENCE_WORDS_MAX = 25
PARAGRAPH_WORDS_MAX = 80
LINE_LENGTH_MAX = 100
CELL_WORDS_MAX = 40

OPENINGS = re.compile(
    r"(What|Who|Whoever|Whom|Whose|Whether|Whatever|That which|That of|Those that|Those of"
    r"|Those who|Of|By whom|By what|From what|For whom|For what|How|Where|Wherever)\b"
)
# A question in a heading or a tutorial is fine: these are openings of statements only.
BANNED = {
    "anew": "again, or rebuild",
    "whoever": "name the person or the program",
    "that which": "name the thing",
    "is told": "programs report, log and return",
    "are told": "programs report, log and return",
    "was told": "programs report, log and return",
    "be told": "programs report, log and return",
    "as told": "as configured, as given",
    "comes to it": "name the effect",
    "knows nothing of": "does not depend on",
    "know nothing of": "do not depend on",
    "is no more": "is gone, is no longer",
    "there is none": "it does not exist",
    "let go of": "release",
    "nobody waits": "name the caller",
    "mended": "fixed",
    "mends": "fixes",
    "at the first go": "at the first attempt",
    "what is there": "name the thing",
    "what was there": "name the thing",
    "what came": "name the thing",
    "of which it": "split the sentence",
    "else the": "otherwise the, or the default",
    "told": "programs report, log and return",
    "tell whether": "return whether",
    "tells": "programs report, log and return",
    "says": "programs report, log and return",
    "hears": "programs read, receive and notice",
    "knows": "programs have, store and depend on",
    "nobody": "name the person or the program",
    "by itself": "automatically, alone, or delete it",
    "lies": "is",
    "stands": "is, means, is written",
}
BANNED_IN_NAMES = BANNED | {
    "tell": "programs report, log and return",
    "say": "programs report, log and return",
    "said": "programs report, log and return",
    "hear": "programs read, receive and notice",
    "heard": "programs read, receive and notice",
    "comes to": "name the effect",
    "comes of": "name the effect",
}
QUOTING = {ROOT / "tools" / "words.py", ROOT / "tests" / "unit" / "test_words.py"}
"""Files that quote idioms and openings: their texts other than docstrings are not checked."""
_BANNED = re.compile(
    r"\b(" + "|".join(re.escape(idiom) for idiom in BANNED) + r")\b", re.IGNORECASE
)
_NAME_OPENING = re.compile(
    r"(what|who|whoever|whom|whose|whether|whatever|whichever|wherever|of|where|which|that|how|why)\b"
)
_BANNED_IN_NAME = re.compile(
    r"\b(" + "|".join(re.escape(idiom) for idiom in BANNED_IN_NAMES) + r")\b"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')`*]*\s+(?=[\"'(`*\[]*[A-Z0-9])")
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_LIST_ITEM = re.compile(r"^\s*([-*+]|\d+\.)\s+")


class Finding(NamedTuple):
    path: Path
    line: int
    rule: str

    def __str__(self) -> str:
        path = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{path}:{self.line}: {self.rule}"


class Text(NamedTuple):
    """A piece of prose, and the line at which it begins."""

    line: int
    words: str


def main() -> int:
    """Print the findings below the named paths; fail when there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--count", action="store_true", help="print only their number")
    arguments = parser.parse_args()
    found = [finding for path in arguments.paths for finding in check(path.resolve())]
    if not arguments.count:
        print(*found, sep="\n")
    print(f"{len(found)} findings")
    return 1 if found else 0


def check(path: Path) -> list[Finding]:
    """Findings in a file, or in all pages and modules below a folder."""
    if path.is_dir():
        return [finding for inner in files_below(path) for finding in check(inner)]
    text = path.read_text()
    return list(page_findings(path, text) if path.suffix == ".md" else code_findings(path, text))


def files_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        hidden = any(part.startswith(".") or part == "build" for part in inner.parts)
        if path.suffix in {".py", ".md"} and not hidden:
            yield path


def page_findings(path: Path, text: str) -> Iterator[Finding]:
    """Lengths of lines, sentences and paragraphs, and idioms, outside of code blocks."""
    for number, line in prose_lines(text):
        if len(line) > LINE_LENGTH_MAX and not line.lstrip().startswith("|") and " " in line[:90]:
            yield Finding(path, number, f"line of {len(line)} characters")
        for cell in line.split("|") if line.startswith("|") else ():
            if len(cell.split()) > CELL_WORDS_MAX:
                yield Finding(path, number, f"table cell of {len(cell.split())} words")
    for paragraph in paragraphs(text):
        words = plain(paragraph.words)
        if len(words.split()) > PARAGRAPH_WORDS_MAX:
            yield Finding(path, paragraph.line, f"paragraph of {len(words.split())} words")
        for sentence in sentences(words):
            if len(sentence.split()) > SENTENCE_WORDS_MAX:
                yield Finding(path, paragraph.line, f"sentence of {len(sentence.split())} words")
            opening = OPENINGS.match(sentence)
            if opening and "?" not in sentence and not is_link_text(sentence, paragraph.words):
                yield Finding(path, paragraph.line, f"sentence begins with '{opening[0]}'")
        yield from idioms(path, Text(paragraph.line, _LINK.sub(r"\1", paragraph.words)))


def code_findings(path: Path, text: str) -> Iterator[Finding]:
    """Openings and idioms of docstrings, comments and names of tests, and idioms of other texts."""
    tree = ast.parse(text)
    docstrings = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings[id(first.value)] = first.value
    for docstring in docstrings.values():
        if isinstance(docstring.value, str):
            yield from docstring_findings(path, Text(docstring.lineno, docstring.value))
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(words)) if (
                id(node) not in docstrings and " " in words and path not in QUOTING
            ):
                yield from idioms(path, Text(node.lineno, words))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from name_findings(path, Text(node.lineno, name))
    for comment in comments(text):
        yield from idioms(path, comment)
        if opening := OPENINGS.match(comment.words):
            yield Finding(path, comment.line, f"comment begins with '{opening[0]}'")


def docstring_findings(path: Path, docstring: Text) -> Iterator[Finding]:
    if opening := OPENINGS.match(docstring.words.strip()):
        yield Finding(path, docstring.line, f"docstring begins with '{opening[0]}'")
    for sentence in sentences(plain(docstring.words.partition("\n\n")[0])):
        if len(sentence.split()) > SENTENCE_WORDS_MAX:
            yield Finding(path, docstring.line, f"sentence of {len(sentence.split())} words")
    yield from idioms(path, docstring)


def name_findings(path: Path, name: Text) -> Iterator[Finding]:
    """Opening and idioms of the name of a test, read as a sentence."""
    test, _, sentence = name.words.replace("_", " ").partition(" ")
    if test != "test":
        return
    if opening := _NAME_OPENING.match(sentence):
        yield Finding(path, name.line, f"name begins with '{opening[0]}': {name.words}")
    for found in _BANNED_IN_NAME.finditer(sentence):
        advice = BANNED_IN_NAMES[found[0]]
        yield Finding(path, name.line, f"name with '{found[0]}': {advice}: {name.words}")


def comments(text: str) -> Iterator[Text]:
    """Yield runs of whole-line comments as one text each, and comments behind code."""
    run: list[str] = []
    begin = last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        words = token.string.lstrip("#: ")
        alone = token.line.strip().startswith("#")
        if run and alone and token.start[0] == last + 1:
            run.append(words)
        else:
            if run:
                yield Text(begin, " ".join(run))
            run, begin = [words], token.start[0]
        last = token.start[0] if alone else -1
    if run:
        yield Text(begin, " ".join(run))


def idioms(path: Path, text: Text) -> Iterator[Finding]:
    for found in _BANNED.finditer(_CODE.sub("X", text.words)):
        line = text.line + text.words[: found.start()].count("\n")
        advice = BANNED[found[0].lower()]
        yield Finding(path, line, f"'{found[0]}': {advice}")


def is_link_text(sentence: str, paragraph: str) -> bool:
    """Return whether the sentence begins with a link, whose text may be a heading."""
    return any(sentence.startswith(link) for link in _LINK.findall(paragraph))


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines outside of fenced and indented code."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def paragraphs(text: str) -> Iterator[Text]:
    """Runs of prose lines; a list item is a paragraph, headings and tables are none."""
    run: list[str] = []
    begin = last = 0
    for number, line in prose_lines(text):
        ends = not line.strip() or line.lstrip().startswith(("#", "|", "<", ">", "!!!", "???"))
        if run and (ends or number != last + 1 or _LIST_ITEM.match(line)):
            yield Text(begin, " ".join(run))
            run = []
        if not ends:
            if not run:
                begin = number
            run.append(_LIST_ITEM.sub("", line).strip())
        last = number
    if run:
        yield Text(begin, " ".join(run))


def plain(text: str) -> str:
    """Prose in which code counts as a word that may begin a sentence, and a link as its text."""
    return _LINK.sub(r"\1", _CODE.sub("Code", text))


def sentences(text: str) -> list[str]:
    return _SENTENCE_END.split(text)


if __name__ == "__main__":
    sys.exit(main())
