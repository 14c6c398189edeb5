"""The files of a pipeline: the differences that its fingerprint shows, and those it ignores."""

from pathlib import Path

import pytest

from headrace.pipelines.project import load
from tests.builders.declared_pipelines import SETTINGS, write_folder

FILES = {
    "a.sql": "CREATE TEMPORARY VIEW a AS SELECT 1 AS one;\n",
    "more/b.py": "import _shared\nfrom headrace import pipelines as dp\n"
    "@dp.table(name=_shared.NAME)\ndef b(): return dp.read_stream('sources.orders')\n",
    "_shared.py": "NAME = 'raw.b'\n",
    "order.avsc": '{"type": "record", "name": "o", "fields": []}\n',
}
NAMED = SETTINGS + '[sources.others]\nformat = "avro"\nschema = "order.avsc"\n'


def fingerprint(place: Path, files: dict[str, str], settings: str = NAMED) -> str:
    folder = write_folder(place, files, settings)
    return load(folder, {}).fingerprint


def test_a_fingerprint_is_the_same_in_another_place_and_checkout(tmp_path: Path) -> None:
    """ARC-4: lineage names the pipeline's version, independent of user and machine."""
    first = fingerprint(tmp_path / "1", FILES)
    turned = dict(reversed(FILES.items()))
    assert fingerprint(tmp_path / "2", turned) == first
    ends = {name: text.replace("\n", "\r\n") for name, text in FILES.items()}
    assert fingerprint(tmp_path / "3", ends, NAMED.replace("\n", "\r\n")) == first
    assert len(first) == 12
    assert int(first, 16) >= 0


@pytest.mark.parametrize("changed", [*FILES, "pipeline.toml"])
def test_a_change_of_any_loaded_file_changes_the_fingerprint(tmp_path: Path, changed: str) -> None:
    files, sign = dict(FILES), "--" if changed.endswith(".sql") else "#"
    before = fingerprint(tmp_path, files)
    if changed == "pipeline.toml":
        assert fingerprint(tmp_path, files, NAMED + "# checked\n") != before
        return
    files[changed] += "\n" if changed == "order.avsc" else f"{sign} checked\n"
    assert fingerprint(tmp_path, files) != before


def test_a_file_under_another_name_is_another_file(tmp_path: Path) -> None:
    files = {**FILES, "c.sql": FILES["a.sql"]}
    del files["a.sql"]
    assert fingerprint(tmp_path / "1", files) != fingerprint(tmp_path / "2", FILES)


@pytest.mark.parametrize(
    "name", ["README.md", "tests/test_a.py", "_unused.py", "lake/raw/orders/x.sql"]
)
def test_files_that_are_not_loaded_do_not_count(tmp_path: Path, name: str) -> None:
    before = fingerprint(tmp_path, FILES)
    assert fingerprint(tmp_path, {**FILES, name: "anything"}) == before


def test_installed_libraries_in_the_folder_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines have their own libraries; lineage is about the pipeline."""
    installed = ".venv/lib/site-packages"
    files = {**FILES, "_more.py": "import for_the_fingerprint", "c.py": "import _more"}
    found = []
    for place in (tmp_path / "1", tmp_path / "2"):
        with monkeypatch.context() as patched:
            patched.syspath_prepend(place / "shop" / installed)
            library = {f"{installed}/for_the_fingerprint.py": f"HERE = '{place}'"}
            found.append(fingerprint(place, {**files, **library}))
    assert found[0] == found[1]


def test_no_value_of_the_environment_goes_into_a_fingerprint(tmp_path: Path) -> None:
    """It is part of every commit, and secrets come from the environment."""
    settings = NAMED + '[client]\n"sasl.password" = "${PASSWORD}"\n'
    folder = write_folder(tmp_path, FILES, settings)
    first = load(folder, {"PASSWORD": "one"})
    second = load(folder, {"PASSWORD": "two"})
    assert first.settings.client != second.settings.client
    assert first.fingerprint == second.fingerprint
