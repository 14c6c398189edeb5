"""The wheel as users install it: its metadata, and a node from it in a bare environment.

The environment has the wheel and the declared dependencies of the base install, nothing else, so an
undeclared import fails here. The recipe of the container image runs the same way.
"""

import email
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.processes.nodes import free_port

ROOT = Path(__file__).resolve().parents[2]
READY = "Headrace is ready on "


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder))
    subprocess.run([sys.executable, "-m", "pip", *build, str(ROOT)], check=True)
    (path,) = folder.glob("headrace-*.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_string(archive.read(name).decode())


@pytest.fixture(scope="module")
def bare(wheel: Path, metadata: Message, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and its base dependencies only."""
    folder = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    install = ("install", "--quiet", "--no-index", "--no-deps", str(wheel))
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *install], check=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    for needed in dependencies(metadata.get_all("Requires-Dist") or []):
        link_files(needed, site_packages)
    return folder / "bin"


def dependencies(requirements: list[str]) -> Iterator[Distribution]:
    """Yield the installed distributions that requirements name, without extras, transitively."""
    names = list(requirements)
    seen = set()
    while names:
        requirement = Requirement(names.pop())
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in seen:
            seen.add(requirement.name)
            found = distribution(requirement.name)
            names += found.requires or []
            yield found


def link_files(found: Distribution, site_packages: Path) -> None:
    for file in found.files or []:
        top = file.parts[0]
        if top != ".." and not (site_packages / top).exists():
            (site_packages / top).symlink_to(Path(str(found.locate_file(top))))


def run(bare: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return subprocess.run(
        [str(bare / "headrace"), *words],
        input=stdin,
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )


def test_the_metadata_has_licence_readme_and_extras(metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).lstrip().startswith("# Headrace")
    extras = set(metadata.get_all("Provides-Extra") or [])
    assert {"all", "pipelines", "re2", "registry", "rest", "spark"} <= extras


def test_the_description_links_to_no_file_of_the_source_tree(metadata: Message) -> None:
    text = str(metadata.get_payload())
    assert [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link] == []
    assert "- Your first pipeline: from zero" in text


def test_the_wheel_is_typed_and_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert "headrace/py.typed" in names
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert sources <= names


def test_the_wheels_of_the_base_install_run_on_todays_linux_families(metadata: Message) -> None:
    """OPS-7: plain Python, or compiled for a glibc that all of them have had since 2019."""
    assert metadata["Requires-Python"] == ">=3.11"
    for needed in dependencies(metadata.get_all("Requires-Dist") or []):
        tags = re.findall(r"^Tag: (.+)$", needed.read_text("WHEEL") or "", re.MULTILINE)
        glibc = [
            (int(major), int(minor))
            for major, minor in re.findall(r"manylinux_(\d+)_(\d+)_", " ".join(tags))
        ]
        is_plain = any(tag.endswith("-none-any") for tag in tags)
        is_old = "manylinux2014" in " ".join(tags)
        assert is_plain or is_old or min(glibc) <= (2, 28), (needed.name, tags)


def test_the_base_install_has_all_that_a_node_needs(bare: Path, tmp_path: Path) -> None:
    """OPS-7: a node, a producer and a consumer, with Python and no other program."""
    assert re.fullmatch(r"headrace \d+\.\d+\.\d+\n", run(bare, "--version").stdout)
    with node(bare, ["up", "--data", str(tmp_path), "--listen", "127.0.0.1:0"]) as address:
        run(bare, "produce", "greetings", "--bootstrap", address, stdin="hello\n")
        read = run(bare, "consume", "greetings", "-o", "0", "-e", "--bootstrap", address)
    assert read.stdout == "hello\n"


def test_a_product_without_its_extra_names_the_wheel_that_is_installed(
    bare: Path, wheel: Path
) -> None:
    done = run(bare, "rest")
    assert done.returncode == 1
    assert f"pip install 'headrace[rest] @ {wheel.as_uri()}'" in done.stderr


def test_make_builds_the_wheel_without_the_test_tools() -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "wheel", "VENV=missing"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "pip --disable-pip-version-check --quiet wheel --no-deps" in planned.stdout
    assert "Installing" not in planned.stdout


def test_the_images_recipe_starts_a_healthy_node(bare: Path, tmp_path: Path) -> None:
    """The Dockerfile's command and health check, with other ports and another directory."""
    recipe = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    command = json.loads(instruction(recipe, "CMD"))
    check = json.loads(instruction(recipe, "HEALTHCHECK").partition("CMD")[2])
    words = ["127.0.0.1:0" if word == "0.0.0.0:9092" else word for word in command]
    words = [str(tmp_path) if word == "/data" else word for word in words]
    port = str(free_port())
    words = [port if word == "9644" else word for word in words]
    check = [word.replace("9644", port) for word in check]
    with node(bare, words):
        subprocess.run([str(bare / check[0]), *check[1:]], check=True, timeout=10)


def test_the_image_does_not_run_as_root() -> None:
    recipe = (ROOT / "Dockerfile").read_text()
    assert instruction(recipe, "USER") == "headrace"


@contextmanager
def node(bare: Path, words: list[str]) -> Iterator[str]:
    """Run `headrace` with these words until the block ends; yield the address of the node."""
    with subprocess.Popen(
        [bare / "headrace", *words], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert line.startswith(READY)
            yield line.removeprefix(READY).strip()
        finally:
            process.terminate()


def instruction(recipe: str, name: str) -> str:
    """Return the arguments of the last instruction of a name."""
    return str(re.findall(rf"^{name} (.+)$", recipe, re.MULTILINE)[-1]).strip()
