"""Decisions of `headrace users`, and the sources of passwords."""

import io
from pathlib import Path

import click
import pytest

from headrace.cli.main import main
from headrace.cli.password_options import PasswordOptions
from headrace.cli.users import check_absent, joined, mechanisms_of
from headrace.client.descriptions import Outcome
from headrace.client.users import ScramUser
from headrace.errors import HeadraceError
from headrace.security.sasl.scram import Mechanism

ADA = ScramUser("ada", {"SCRAM-SHA-512": 4096})


def test_a_password_is_read_from_a_file_without_its_line_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SEC-5: scripts set passwords without a terminal."""
    file = tmp_path / "password"
    file.touch(mode=0o600)
    file.write_text(" a, b=c \u00e4 \r\nmore\n")
    assert PasswordOptions(password_file=file).read("ada") == " a, b=c \u00e4 "
    assert capsys.readouterr().err == ""
    file.chmod(0o644)
    PasswordOptions(password_file=file).read("ada")
    assert "readable by other users" in capsys.readouterr().err


def test_a_password_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\nmore\n"))
    assert PasswordOptions(from_stdin=True).read("ada") == "secret"


def test_a_password_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADA_PASSWORD", "secret")
    assert PasswordOptions(password_env="ADA_PASSWORD").read("ada") == "secret"
    with pytest.raises(HeadraceError, match="no variable ADA_PASSWORT"):
        PasswordOptions(password_env="ADA_PASSWORT").read("ada")


def test_without_a_terminal_a_source_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    with pytest.raises(click.UsageError, match="--password-stdin"):
        PasswordOptions().read("ada")


def test_one_source_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(click.UsageError, match="give one of"):
        PasswordOptions(from_stdin=True, password_env="HOME").read("ada")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(HeadraceError, match="empty"):
        PasswordOptions(from_stdin=True).read("ada")


def test_a_password_is_not_an_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["users", "add", "ada", "--password", "secret"]) == 2
    assert "No such option" in capsys.readouterr().err


def test_adding_a_user_again_is_rejected_with_the_other_command() -> None:
    check_absent([ADA], [Mechanism.SHA_256])
    with pytest.raises(HeadraceError, match="headrace users set-password ada"):
        check_absent([ADA], [Mechanism.SHA_512])


def test_a_change_applies_to_the_mechanisms_that_a_user_has() -> None:
    both = ScramUser("ada", {"SCRAM-SHA-512": 4096, "SCRAM-SHA-256": 8192})
    assert set(mechanisms_of([both], "ada", ())) == set(Mechanism)
    assert mechanisms_of([both], "ada", ("SCRAM-SHA-256",)) == [Mechanism.SHA_256]
    with pytest.raises(HeadraceError, match="it has SCRAM-SHA-512"):
        mechanisms_of([ADA], "ada", ("SCRAM-SHA-256",))
    with pytest.raises(HeadraceError, match="headrace users list"):
        mechanisms_of([], "ada", ())


def test_the_first_failure_of_several_mechanisms_is_reported() -> None:
    failed = Outcome(name="ada", error="UNACCEPTABLE_CREDENTIAL")
    assert joined([Outcome(name="ada"), failed]).error == "UNACCEPTABLE_CREDENTIAL"
    assert joined([Outcome(name="ada")]) == Outcome(name="user ada")
