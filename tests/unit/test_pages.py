"""Pages open with their purpose and an example, and links between them lead somewhere."""

import configparser
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from headrace.settings import kafka_properties, properties
from headrace.settings.broker import BROKER_CONFIGS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "headrace"
PAGES = sorted(DOCS.rglob("*.md")) + [ROOT / name for name in ("README.md", "CONTRIBUTING.md")]

OPENING = [page for page in PAGES if page.parent.name != "decisions"]


@pytest.mark.parametrize("page", OPENING, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_opens_with_a_sentence_and_an_example(page: Path) -> None:
    title, sentence, *rest = page.read_text().split("\n\n")
    assert title.startswith("# ")
    assert re.match(r"[A-Z`]", sentence)
    before_tasks = "\n\n".join(rest).partition("\n### ")[0]
    assert re.search(r"^```|^\$ ", before_tasks[:1500], re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    assert [link for link in links(page) if not leads_somewhere(page, link)] == []


@pytest.mark.parametrize("page", sorted((DOCS / "internals" / "decisions").glob("0*.md")))
def test_a_decision_has_a_status_and_a_place_in_the_index(page: Path) -> None:
    title, status = page.read_text().split("\n\n")[:2]
    assert re.fullmatch(rf"# {int(page.name[:4])}\. \S.*", title)
    assert re.match(r"Status: (accepted|replaced by .*), \d{4}-\d\d-\d\d\.", status)
    assert f"[{title[2:]}]({page.name})" in (page.parent / "index.md").read_text()


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


def test_the_readme_names_every_extra_for_users() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    table = (ROOT / "README.md").read_text().partition("| extra | brings |")[2].partition("\n\n")[0]
    named = {
        name
        for row in table.splitlines()
        for name in re.findall(r"`([^`]+)`", row[: row.find("|", 1)])
    }
    assert named == project["optional-dependencies"].keys() - {"dev", "docs", "http"}


def test_every_page_is_on_the_map() -> None:
    on_the_map = {(DOCS / link).resolve() for link in links(DOCS / "index.md")}
    decisions = set(DOCS.rglob("decisions/0*.md"))
    assert set(DOCS.rglob("*.md")) - decisions - {DOCS / "index.md"} <= on_the_map


def test_the_unit_of_systemd_starts_a_node_by_its_settings() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    page = (DOCS / "guides" / "service.md").read_text()
    unit.read_string(blocks(page, "ini")[0])
    program, *words = unit["Service"]["execstart"].split()
    assert Path(program).name == "headrace"
    assert words[:2] == ["up", "--config"]
    assert f"`{words[2]}`" in page


def test_the_architecture_names_every_package_and_existing_modules() -> None:
    page = (DOCS / "internals" / "architecture.md").read_text()
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {name for name in packages if f"| `{name}/` |" not in page} == set()
    modules = set(re.findall(r"`((?!tests/)[a-z_][a-z_/]*\.py)`", page))
    assert {name for name in modules if not any(SOURCE.rglob(name))} == set()


def test_the_site_has_every_page() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    shown = {DOCS / name for name in names_in(site["nav"])}
    assert shown == set(DOCS.rglob("*.md"))


def names_in(nav: Any) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case list():
            yield from (name for entry in nav for name in names_in(entry))
        case dict():
            yield from (name for entry in nav.values() for name in names_in(entry))


@pytest.mark.parametrize("name", ["service", "moving"])
def test_properties_of_a_page_are_the_brokers(name: str) -> None:
    known = {*BROKER_CONFIGS, *kafka_properties.definitions()}
    (shown,) = blocks((DOCS / "guides" / f"{name}.md").read_text(), "properties")
    assert properties.parse(shown).keys() <= known


def blocks(page: str, language: str) -> list[str]:
    pattern = rf"^( *)```{language}\n(.*?)^ *```"
    return [found[1] for found in re.findall(pattern, page, re.MULTILINE | re.DOTALL)]


def links(page: Path) -> Iterator[str]:
    prose = re.sub(r"^( *)```.*?^ *```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose)):
        if "://" not in link:
            yield link


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target)


def anchors(page: Path) -> set[str]:
    """The names of headings, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).strip().replace(" ", "-") for one in headings}
