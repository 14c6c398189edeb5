"""Users with passwords."""

import io
from pathlib import Path

import pytest

from headrace.http.users import InvalidUserFile, PasswordHash, UserFile, main, read_users


def user_file(tmp_path: Path, content: str, mode: int = 0o600) -> Path:
    path = tmp_path / "users"
    path.write_text(content)
    path.chmod(mode)
    return path


def test_a_user_of_the_file_is_let_in_by_password_only(tmp_path: Path) -> None:
    users = read_users(user_file(tmp_path, f"# people\n\nada:{PasswordHash.of('s3cret')}\n"))
    given = [("ada", "s3cret"), ("ada", "S3cret"), ("bob", "s3cret"), ("", ""), ("ada", "x" * 2000)]
    assert [users.accepts(*one) for one in given] == [True, False, False, False, False]


def test_a_hash_is_read_back_from_its_text() -> None:
    made = PasswordHash.of("pässwörd")
    assert PasswordHash.parse(str(made)) == made
    assert made.fits("pässwörd")


def test_two_hashes_of_one_password_differ() -> None:
    assert str(PasswordHash.of("same")) != str(PasswordHash.of("same"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ada", "name:hash"),
        (":scrypt$2$AA==$AA==", "name:hash"),
        ("ada:plain", "not enough values"),
        ("ada:md5$1$AA==$AA==", "md5"),
        ("ada:scrypt$3$AA==$AA==", "cost"),
        ("ada:scrypt$99999999999$AA==$AA==", "cost"),
        ("ada:scrypt$16384$A$AA==", "base64"),
        ("ada:scrypt$16384$AA==$AA==", "32"),
    ],
)
def test_an_invalid_line_is_named_with_advice(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(InvalidUserFile, match=reason) as failure:
        read_users(user_file(tmp_path, f"# first\n{line}\n"))
    assert "line 2" in str(failure.value)
    assert "headrace.http.users" in str(failure.value)


def test_a_file_without_users_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidUserFile, match="has no user"):
        read_users(user_file(tmp_path, "# empty\n"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidUserFile, match="nowhere"):
        read_users(tmp_path / "nowhere")


def test_a_password_that_was_right_is_remembered_and_not_kept() -> None:
    users = UserFile({"ada": PasswordHash.of("s3cret")})
    assert not users.remembers("ada", "s3cret")
    users.remember("ada", "s3cret")
    assert users.remembers("ada", "s3cret")
    assert not users.remembers("ada", "other")
    assert not users.remembers("a", "das3cret")
    assert "s3cret" not in repr(users)


def test_no_more_than_so_many_are_remembered() -> None:
    users = UserFile({})
    for number in range(1_001):
        users.remember("ada", str(number))
    assert not users.remembers("ada", "0")
    assert users.remembers("ada", "1000")


def test_a_file_that_is_too_long_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidUserFile, match="longer than 1024 KB"):
        read_users(user_file(tmp_path, f"ada:{PasswordHash.of('x')}\n" + "#" * (1 << 20)))


def test_a_piped_password_makes_a_line_that_lets_its_user_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("s3cret \n"))
    main(["ada"])
    told = capsys.readouterr()
    assert read_users(user_file(tmp_path, told.out)).accepts("ada", "s3cret ")
    assert told.err == ""


@pytest.mark.parametrize(
    ("arguments", "given", "code", "words"),
    [
        (["--help"], "", 0, "usage: python -m headrace.http.users"),
        ([], "", 2, "NAME"),
        (["--nmae"], "x\n", 2, "NAME"),
        (["a:b"], "x\n", 2, "invalid user name 'a:b'"),
        (["#a"], "x\n", 2, "invalid user name '#a'"),
        (["ada"], "", 2, "no password"),
        (["ada"], "x" * 1025, 2, "longer than 1024 bytes"),
    ],
)
def test_invalid_input_is_rejected_with_advice(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    given: str,
    code: int,
    words: str,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    with pytest.raises(SystemExit) as end:
        main(arguments)
    told = capsys.readouterr()
    assert end.value.code == code
    assert words in told.out + told.err
