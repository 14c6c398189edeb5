"""GSSAPI from the server's side, with contexts in memory, and the rules of Kerberos names."""

import pytest

from headrace.errors import InvalidConfig
from headrace.security.principals import USER, Principal
from headrace.security.sasl.gssapi_server import GssapiServer, GssFailed
from headrace.security.sasl.kerberos_names import KerberosRules, NoRule
from headrace.security.sasl.server import LoginRejected

REALM = "EXAMPLE.COM"
RULES = KerberosRules(("DEFAULT",), REALM)
CHOICE = b"wrapped:\1\0\0\0"


class MemoryContext:
    """A context that is complete after some tokens; wrapped content has a prefix."""

    def __init__(self, tokens: int = 1, answer: bytes = b"last", initiator: str = "ada") -> None:
        self.initiator = f"{initiator}@{REALM}"
        self._left = tokens
        self._answer = answer

    @property
    def is_complete(self) -> bool:
        return self._left == 0

    def step(self, token: bytes) -> bytes:
        if not token.startswith(b"token"):
            raise GssFailed("defective token")
        self._left -= 1
        return b"more" if self._left else self._answer

    def wrap(self, content: bytes) -> bytes:
        return b"wrapped:" + content

    def unwrap(self, content: bytes) -> bytes:
        if not content.startswith(b"wrapped:"):
            raise GssFailed("not wrapped")
        return content.removeprefix(b"wrapped:")


def server(context: MemoryContext | None = None, rules: KerberosRules = RULES) -> GssapiServer:
    return GssapiServer(lambda: context or MemoryContext(), rules)


def test_a_ticket_logs_its_principal_in() -> None:
    exchange = server(MemoryContext(tokens=2))
    assert exchange.answer(b"token 1") == b"more"
    assert exchange.answer(b"token 2") == b"last"
    assert exchange.answer(b"") == b"wrapped:\1\0\0\0"
    assert exchange.answer(CHOICE) == b""
    assert exchange.login is not None
    assert exchange.login.principal == Principal(USER, "ada")


def test_layers_are_offered_at_once_if_the_context_has_no_last_token() -> None:
    exchange = server(MemoryContext(answer=b""))
    assert exchange.answer(b"token") == b"wrapped:\1\0\0\0"
    exchange.answer(CHOICE)
    assert exchange.login is not None


@pytest.mark.parametrize("identity", [b"", b"ada", b"root", b"kafka@127.0.0.1", b"\xff"])
def test_the_ticket_decides_on_the_principal(identity: bytes) -> None:
    exchange = server(MemoryContext(answer=b""))
    exchange.answer(b"token")
    exchange.answer(CHOICE + identity)
    assert exchange.login is not None
    assert exchange.login.principal.name == "ada"


@pytest.mark.parametrize(
    "choice",
    [
        b"",
        b"\1\0\0\0",
        b"wrapped:",
        b"wrapped:\1\0\0",
        b"wrapped:\2\0\0\0",
        b"wrapped:\4\0\0\0",
    ],
)
def test_another_choice_is_rejected(choice: bytes) -> None:
    exchange = server(MemoryContext(answer=b""))
    exchange.answer(b"token")
    with pytest.raises(LoginRejected):
        exchange.answer(choice)
    assert exchange.login is None
    with pytest.raises(LoginRejected, match="over"):
        exchange.answer(CHOICE)


def test_an_invalid_token_is_rejected() -> None:
    for message in (b"", b"\x60\x82garbage"):
        with pytest.raises(LoginRejected, match="Kerberos rejects"):
            server().answer(message)


def test_a_token_behind_the_last_one_is_rejected() -> None:
    exchange = server()
    exchange.answer(b"token")
    with pytest.raises(LoginRejected):
        exchange.answer(b"token")


def test_a_principal_without_a_name_is_rejected() -> None:
    exchange = server(MemoryContext(answer=b""), KerberosRules(("DEFAULT",), "OTHER.COM"))
    exchange.answer(b"token")
    with pytest.raises(LoginRejected, match="has no name here"):
        exchange.answer(CHOICE)


@pytest.mark.parametrize(
    ("rules", "principal", "name"),
    [
        (("DEFAULT",), "ada@EXAMPLE.COM", "ada"),
        (("DEFAULT",), "kafka/host@EXAMPLE.COM", "kafka"),
        (("RULE:[1:$1]",), "ada@OTHER.COM", "ada"),
        (("RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//", "DEFAULT"), "ada@OTHER.COM", "ada"),
        (("RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//", "DEFAULT"), "bob@EXAMPLE.COM", "bob"),
        (("RULE:[2:$1-$2](app-.*)s/^app-(.*)/$1/L",), "app/Shop@OTHER.COM", "shop"),
        (("RULE:[1:$1]/U",), "ada@OTHER.COM", "ADA"),
        (("RULE:[1:$1](a.*)s/a/x/g",), "ada@OTHER.COM", "xdx"),
        (("RULE:[1:$1](a.*)s/a/x/",), "ada@OTHER.COM", "xda"),
    ],
)
def test_rules_make_names_as_kafkas_do(rules: tuple[str, ...], principal: str, name: str) -> None:
    """SEC-6"""
    assert KerberosRules(rules, REALM).short_name(principal) == name


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        (("DEFAULT",), "ada@OTHER.COM"),
        (("RULE:[2:$1]",), "ada@EXAMPLE.COM"),
        (("RULE:[1:$1@$0]",), "ada@EXAMPLE.COM"),
        (("RULE:[1:$2]",), "ada@EXAMPLE.COM"),
        (("DEFAULT",), "ada"),
        ((), "ada@EXAMPLE.COM"),
    ],
)
def test_a_name_without_a_rule_is_rejected(rules: tuple[str, ...], principal: str) -> None:
    with pytest.raises(NoRule):
        KerberosRules(rules, REALM).short_name(principal)


@pytest.mark.parametrize("rule", ["", "default", "RULE:1", "RULE:[1:$1](*)", "RULE:[1:$1]s/a/"])
def test_an_invalid_rule_is_rejected(rule: str) -> None:
    with pytest.raises(InvalidConfig):
        KerberosRules((rule,), REALM)
