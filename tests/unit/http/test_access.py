"""Bearer tokens, and several ways to authenticate."""

import base64
from pathlib import Path
from typing import Any

import pytest

from headrace.http.access import (
    Access,
    Authentication,
    InvalidTokenFile,
    Principal,
    principal_of,
    read_tokens,
)
from headrace.http.tls import CERTIFICATE_KEY
from headrace.http.users import PasswordHash, UserFile


def token_file(tmp_path: Path, content: str, mode: int = 0o600) -> Path:
    path = tmp_path / "tokens"
    path.write_text(content)
    path.chmod(mode)
    return path


def test_every_line_is_a_token(tmp_path: Path) -> None:
    tokens = read_tokens(token_file(tmp_path, "# of the console\nfirst \n\nsecond\n"))
    given = ("first", "second", "third", "", "# of the console")
    assert [tokens.holder(one) for one in given] == ["token-2", "token-4", None, None, None]


def test_a_token_may_have_a_name_and_a_name_several_tokens(tmp_path: Path) -> None:
    tokens = read_tokens(token_file(tmp_path, "ada:old\nada: new\nbob:other\n"))
    given = ("old", "new", "other", "ada:old", "ada")
    assert [tokens.holder(one) for one in given] == ["ada", "ada", "bob", None, None]


@pytest.mark.parametrize("line", [":token", "ada:", "ada:to:ken"])
def test_an_invalid_line_of_a_token_file_is_rejected(tmp_path: Path, line: str) -> None:
    with pytest.raises(InvalidTokenFile, match=r"line 2 .* NAME:TOKEN"):
        read_tokens(token_file(tmp_path, f"first\n{line}\n"))


@pytest.mark.parametrize("content", ["", "\n \n", "# only words\n"])
def test_a_file_without_a_token_is_rejected(tmp_path: Path, content: str) -> None:
    with pytest.raises(InvalidTokenFile, match="has no token"):
        read_tokens(token_file(tmp_path, content))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidTokenFile, match="nowhere"):
        read_tokens(tmp_path / "nowhere")


def test_a_file_that_is_too_long_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidTokenFile, match="longer than 64 KB"):
        read_tokens(token_file(tmp_path, "first\n" + "#" * (1 << 16)))


def test_tokens_are_not_kept(tmp_path: Path) -> None:
    assert "hidden-word" not in repr(read_tokens(token_file(tmp_path, "hidden-word\n")))


@pytest.mark.parametrize(("mode", "is_open"), [(0o600, False), (0o640, True), (0o604, True)])
def test_a_file_that_others_may_read_is_reported(tmp_path: Path, mode: int, is_open: bool) -> None:
    assert read_tokens(token_file(tmp_path, "word", mode)).is_open_to_others is is_open


async def asked(
    authentication: Authentication, *headers: tuple[bytes, bytes], **scope: Any
) -> tuple[int, Any]:
    """Return the status of a request, and its principal in the application."""
    seen: list[Principal | None] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(principal_of(scope))
        await send({"type": "http.response.start", "status": 200, "headers": []})

    statuses: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def receive() -> Any:
        raise AssertionError("the body is not read")

    given = {"type": "http", "path": "/x", "headers": list(headers), **scope}
    await Access(app, authentication, open_paths=["/open"])(given, receive, send)
    return statuses[0], seen[0] if seen else None


def basic(text: str) -> tuple[bytes, bytes]:
    return b"authorization", b"Basic " + base64.b64encode(text.encode())


USERS = UserFile({"ada": PasswordHash.of("pa:ss")})


async def test_a_user_is_known_by_name_and_password() -> None:
    authentication = Authentication(users=USERS)
    assert await asked(authentication, basic("ada:pa:ss")) == (200, Principal("ada", "pa:ss"))


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [basic("ada:wrong")],
        [basic("ada")],
        [(b"authorization", b"Basic %%%")],
        [(b"authorization", b"Bearer pa:ss")],
        [basic("ada:pa:ss"), basic("ada:pa:ss")],
    ],
)
async def test_other_requests_are_rejected(headers: list[tuple[bytes, bytes]]) -> None:
    assert (await asked(Authentication(users=USERS), *headers))[0] == 401


async def test_the_holder_of_a_token_is_known_by_its_name(tmp_path: Path) -> None:
    authentication = Authentication(tokens=read_tokens(token_file(tmp_path, "ada:first\nsecond\n")))
    asking = [
        await asked(authentication, (b"authorization", b"Bearer " + one))
        for one in (b"first", b"second")
    ]
    assert asking == [(200, Principal("ada")), (200, Principal("token-2"))]


async def test_a_requested_certificate_authenticates_its_client() -> None:
    state = {"state": {CERTIFICATE_KEY: "CN=ada"}}
    assert await asked(Authentication(certificates=True), **state) == (200, Principal("CN=ada"))
    assert (await asked(Authentication(users=USERS), **state))[0] == 401


async def test_open_paths_ask_for_nothing() -> None:
    assert await asked(Authentication(users=USERS), path="/open") == (200, None)


async def test_a_websocket_without_proof_is_closed() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    async def never(*_: Any) -> None:
        raise AssertionError("it was let in")

    scope = {"type": "websocket", "path": "/x", "headers": []}
    await Access(never, Authentication(users=USERS))(scope, never, send)  # type: ignore[arg-type]
    assert sent == ["websocket.close"]


def test_a_principal_does_not_show_its_password() -> None:
    assert "pa:ss" not in repr(Principal("ada", "pa:ss"))
