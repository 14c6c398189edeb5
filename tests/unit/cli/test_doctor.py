"""The command: its table, its JSON and its exit code."""

import json
from pathlib import Path

import pytest

from headrace.cli import doctor_checks
from headrace.cli.doctor_checks import Finding, Verdict
from headrace.cli.main import main


@pytest.fixture
def _healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "headrace.cli.doctor.examine", lambda facts: [Finding("clock", Verdict.OK, "steady")]
    )


@pytest.mark.usefixtures("_healthy")
def test_a_healthy_machine_has_nothing_to_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    assert "Nothing to change." in capsys.readouterr().out


def test_a_failure_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = Finding("file system of /data", Verdict.FAIL, "nfs4", "use a local disk")
    monkeypatch.setattr("headrace.cli.doctor.examine", lambda facts: [failure])
    assert main(["doctor"]) == 1
    assert "fail: file system of /data: use a local disk" in capsys.readouterr().out


def test_programs_get_every_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--json", "--data", str(tmp_path)])
    findings = json.loads(capsys.readouterr().out)
    assert {"check", "verdict", "found", "advice"} == set(findings[0])
    assert f"disk space of {tmp_path}" in {finding["check"] for finding in findings}


def test_the_directories_of_a_properties_file_are_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={tmp_path}/a,{tmp_path}/b\n")
    main(["doctor", "--json", "--config", str(config)])
    checks = {finding["check"] for finding in json.loads(capsys.readouterr().out)}
    assert {f"access of {tmp_path}/a", f"access of {tmp_path}/b"} <= checks


@pytest.mark.usefixtures("_healthy")
def test_a_cluster_that_does_not_answer_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--bootstrap", "127.0.0.1:1"]) == 1
    assert "not reachable" in capsys.readouterr().out


def test_the_wanted_number_of_open_files_is_kafkas() -> None:
    """OPS-6: at least 128,000 file descriptors."""
    assert doctor_checks.OPEN_FILES_WANTED == 128_000
