"""Facts of the machine that the tests run on."""

from pathlib import Path

from headrace.runtime.machine import probe_directory, probe_machine


def test_facts_of_this_machine_are_probed(tmp_path: Path) -> None:
    facts = probe_machine([str(tmp_path)])
    assert facts.python >= (3, 11, 0)
    assert facts.open_files_hard >= facts.open_files_soft > 0
    assert facts.now_ms > 1_700_000_000_000
    assert facts.clock_jump_ms < 10_000
    assert facts.directories[0].exists


def test_a_directory_that_is_not_there_yet_has_the_facts_of_its_parent(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for missing in (tmp_path / "a" / "b", tmp_path / "file" / "b"):
        facts = probe_directory(str(missing), "")
        assert not facts.exists
        assert facts.is_writable
        assert facts.device == tmp_path.stat().st_dev
