"""Examples of pages are valid: SQL, Python, settings, and commands with their options."""

import ast
import inspect
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from headrace import pipelines
from headrace.cli.group import headrace
from headrace.pipelines.declaring.settings_file import TABLES, SettingsFile
from headrace.spark.source.options import ENDS, PUSH_FILTERS, STREAM_OPTIONS, SUBSCRIPTIONS
from tests.builders.declared_pipelines import load_folder

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GUIDE = DOCS / "guides" / "pipelines" / "declare.md"
PAGES = [
    *sorted((DOCS / "guides" / "pipelines").glob("*.md")),
    *(DOCS / "guides" / f"{name}.md" for name in ("spark-cluster", "spark-source", "serving")),
    DOCS / "reference" / "pipelines.md",
    DOCS / "reference" / "pipeline-options.md",
    DOCS / "tutorials" / "first-pipeline.md",
    ROOT / "README.md",
    *sorted((ROOT / "examples" / "pipelines").rglob("README.md")),
]
ALL_PAGES = sorted({*PAGES, *DOCS.rglob("*.md"), *ROOT.glob("*.md")})
RAW = "CREATE STREAMING TABLE raw.orders AS SELECT * FROM STREAM(sources.orders);\n"


def blocks(language: str, pages: Iterable[Path] = PAGES) -> Iterator[tuple[str, str]]:
    """The blocks of a language, each with the place that a failure is to name."""
    for page in pages:
        text = page.read_text()
        for found in re.finditer(rf"^( *)```{language}\n(.*?)^ *```", text, re.M | re.S):
            line = text.count("\n", 0, found.start()) + 1
            indented = found[2].splitlines()
            yield f"{page.name}:{line}", "\n".join(one[len(found[1]) :] for one in indented) + "\n"


def shown(language: str, pages: Iterable[Path] = PAGES) -> pytest.MarkDecorator:
    found = dict(blocks(language, pages))
    assert found, f"no page shows {language}"
    return pytest.mark.parametrize("block", found.values(), ids=found)


@shown("sql")
def test_sql_of_a_page_declares_tables(block: str, tmp_path: Path) -> None:
    assert load_folder(tmp_path, {"a.sql": RAW, "b.sql": block}).datasets.keys() > {"raw.orders"}


@shown("toml")
def test_settings_of_a_page_are_ones_that_pipelines_have(block: str, tmp_path: Path) -> None:
    """Lines before the first table of a block belong to [pipeline], unless it has that table."""
    written = tomllib.loads(block)
    header = "" if "pipeline" in written else '[pipeline]\nname = "shop"\n'
    (tmp_path / "pipeline.toml").write_text(header + block)
    file = SettingsFile(tmp_path, environment={})
    file.settings()
    file.sources()
    assert file.problems == []
    assert written.keys() <= set(TABLES) or "master" in written


@shown("python", ALL_PAGES)
def test_python_of_a_page_compiles_and_finds_what_it_imports(block: str) -> None:
    tree = ast.parse(block)
    compile(tree, "page", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for imported in (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)):
        module = import_module(str(imported.module))
        assert [one.name for one in imported.names if not hasattr(module, one.name)] == []


def rows_of(heading: str, page: Path = GUIDE) -> list[list[str]]:
    """The cells of the first table below a heading, without the table's own."""
    below = page.read_text().partition(f"\n{heading}\n")[2]
    table = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", below, re.MULTILINE)
    assert table is not None, f"{page.name} has a table below {heading}"
    lines = table[1].splitlines()
    return [[cell.strip(" |") for cell in line.split(" | ")] for line in lines]


DECLARED = [(row[1].strip("`"), row[2].strip("`")) for row in rows_of("## Choose a kind of table")]


@pytest.mark.parametrize("written", [sql for sql, _ in DECLARED])
def test_examples_of_sql_in_the_guide_are_sql(written: str, tmp_path: Path) -> None:
    """The dots are values that a reader fills in."""
    before = RAW
    if written.startswith("CREATE SINK alerts"):
        before += "CREATE FLOW f AS INSERT INTO alerts BY NAME SELECT id FROM STREAM(raw.orders);\n"
    text = written.replace(
        "... GROUP BY ...", "count(*) AS hits FROM STREAM(raw.orders) GROUP BY 1"
    )
    text = re.sub(r"SELECT \.\.\.(?! FROM)", "SELECT * FROM STREAM(raw.orders)", text)
    text = text.replace("SELECT ... FROM", "SELECT * FROM")
    if text.startswith("... KEYS"):
        text = text.replace("...", "CREATE STREAMING TABLE staging.kept", 1)
    if target := re.search(r"INTO (\S+)", text):
        name = target[1] if "." in target[1] else f"trusted.{target[1]}"
        before += f"CREATE STREAMING TABLE {name};\n"
        text = text.replace(target[0], f"INTO {name}").replace("STREAM(s)", "STREAM(raw.orders)")
    assert len(load_folder(tmp_path, {"a.sql": before, "b.sql": text + ";\n"}).datasets) >= 2


@pytest.mark.parametrize("written", [python for _, python in DECLARED])
def test_names_of_python_in_the_guide_exist(written: str) -> None:
    """Words and arguments are those of the module; dots separate Python's names."""
    call = written.removeprefix("@").replace("(...)", "()").replace(", ...)", ")")
    (statement,) = ast.parse(call.replace("name=...", 'name="zone.x"')).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert isinstance(statement.value.func, ast.Attribute)
    offered = inspect.signature(getattr(pipelines, statement.value.func.attr))
    offered.bind_partial(
        *statement.value.args, **{one.arg or "": one.value for one in statement.value.keywords}
    )


def commands_of(page: Path) -> Iterator[str]:
    """Every line and every piece of a sentence that calls our program."""
    text = page.read_text().replace("\\\n", " ")
    yield from re.findall(r"^ *(?:.* \| )?(headrace [a-z].*)$", text, re.MULTILINE)
    yield from (" ".join(one.split()) for one in re.findall(r"`(headrace [a-z][^`]*)`", text))


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_have_the_options_that_it_gives_them(page: Path) -> None:
    wrong = [text for text in commands_of(page) for _ in unknown_words(text)]
    assert wrong == []


def unknown_words(text: str) -> Iterator[str]:
    """The words of a command that no command or option of the program has."""
    words = shlex.split(text.partition(" > ")[0], comments=True)[1:]
    at: click.Command = headrace
    context = click.Context(headrace)
    while isinstance(at, click.Group) and words and not words[0].startswith("-"):
        named = [word for word in words if word != "|"] if "|" in words[1:2] else words[:1]
        found = [at.get_command(context, name) for name in named]
        yield from (name for name, command in zip(named, found, strict=True) if command is None)
        at = found[0] or click.Command("unknown")
        words = words[len(words) if len(named) > 1 else 1 :]
    known = {name for option in at.params for name in (*option.opts, *option.secondary_opts)}
    known |= {"-h", "--help"}
    yield from (word for word in words if re.match(r"--?[A-Za-z]", word) and word not in known)


def test_the_page_of_the_source_names_its_options_and_no_others() -> None:
    page = DOCS / "guides" / "spark-source.md"
    known = {*STREAM_OPTIONS, *SUBSCRIPTIONS, *ENDS, PUSH_FILTERS, "format", "schema"}
    listed = [
        name for row in rows_of("## Options", page) for name in row[0].strip("`").split("`, `")
    ]
    assert set(listed) - known == {"kafka.*"}
    assert known - set(re.findall(r"`([\w.]+)`", page.read_text())) == set()
