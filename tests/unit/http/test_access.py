"""Bearer tokens."""

from pathlib import Path

import pytest

from headrace.http.access import InvalidTokenFile, read_tokens


def token_file(tmp_path: Path, content: str, mode: int = 0o600) -> Path:
    path = tmp_path / "tokens"
    path.write_text(content)
    path.chmod(mode)
    return path


def test_every_line_is_a_token(tmp_path: Path) -> None:
    tokens = read_tokens(token_file(tmp_path, "# of the console\nfirst \n\nsecond\n"))
    given = ("first", "second", "third", "", "# of the console")
    assert [tokens.accepts(one) for one in given] == [True, True, False, False, False]


@pytest.mark.parametrize("content", ["", "\n \n", "# only words\n"])
def test_a_file_without_a_token_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(InvalidTokenFile, match="holds no token"):
        read_tokens(token_file(tmp_path, content))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidTokenFile, match="nowhere"):
        read_tokens(tmp_path / "nowhere")


def test_tokens_are_not_kept(tmp_path: Path) -> None:
    assert "hidden-word" not in repr(read_tokens(token_file(tmp_path, "hidden-word\n")))


@pytest.mark.parametrize(("mode", "is_open"), [(0o600, False), (0o640, True), (0o604, True)])
def test_a_file_that_others_may_read_is_noticed(tmp_path: Path, mode: int, is_open: bool) -> None:
    assert read_tokens(token_file(tmp_path, "word", mode)).is_open_to_others is is_open
