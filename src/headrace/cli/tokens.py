"""`headrace tokens`: create, list, renew and expire delegation tokens."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec

from headrace.cli.options import ClusterOptions, admin_options, duration_ms
from headrace.cli.output import print_json, print_line, print_rows, time_text
from headrace.cli.resource_options import principal_named
from headrace.client.tokens import Token, Tokens
from headrace.errors import HeadraceError
from headrace.runtime import files
from headrace.security.principals import Principal, parse_principal
from headrace.settings.jaas import SCRAM_LOGIN_MODULE, jaas_text
from headrace.settings.properties import render

_DEFAULT_MS = -1


def principal(text: str) -> Principal:
    """Parse the principal of an option; a name without a type is a user."""
    try:
        return parse_principal(principal_named(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.group("tokens", short_help="Create, list, renew and expire delegation tokens.")
def command() -> None:
    """Create, list, renew and expire delegation tokens.

    A token lets a program log in as its owner for some time, without the owner's password. The
    brokers need delegation.token.secret.key, and these commands a connection with a login.

    \b
    headrace tokens create --max-lifetime 7d --to worker.properties
    headrace tokens list
    headrace tokens renew TOKEN
    """


@command.command("create")
@click.option(
    "--owner", type=principal, metavar="PRINCIPAL", help="The owner; by default this login."
)
@click.option(
    "--renewer",
    "renewers",
    type=principal,
    metavar="PRINCIPAL",
    multiple=True,
    help="A principal that may renew the token, besides the owner; may be repeated.",
)
@click.option(
    "--max-lifetime",
    "max_lifetime_ms",
    type=duration_ms,
    metavar="DURATION",
    show_default="the cluster's",
    help="Time after which the token cannot be renewed, such as 7d.",
)
@click.option(
    "--to",
    "path",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the login of Java's clients into a file, and do not print the secret.",
)
@admin_options
def create(
    owner: Principal | None,
    renewers: tuple[Principal, ...],
    max_lifetime_ms: int | None,
    path: str | None,
    as_json: bool,
    cluster: ClusterOptions,
) -> None:
    """Create a token and print its id and secret.

    The secret is a password: with --to it is written to a file that only its owner can read.
    """
    lifetime_ms = _DEFAULT_MS if max_lifetime_ms is None else max_lifetime_ms
    with cluster.admin() as client:
        token = client.tokens.create(owner=owner, renewers=renewers, max_lifetime_ms=lifetime_ms)
    if path is not None:
        comment = f"The login of {token.owner} by a delegation token, for Java's clients."
        files.replace_secret(path, render(login_settings(token), comment).encode())
    if as_json:
        print_json(_without_secret(token) if path is not None else token)
        return
    print_line(f"token    {token.id}")
    print_line(f"secret   {token.secret if path is None else f'in {path}'}")
    print_line(f"owner    {token.owner}")
    print_line(f"expires  {time_text(token.expires_at_ms)}, unless it is renewed")
    print_line(f"ends     {time_text(token.max_ends_at_ms)} at the latest")


@command.command("list")
@click.option(
    "--owner",
    "owners",
    type=principal,
    metavar="PRINCIPAL",
    multiple=True,
    help="Only tokens of this owner; may be repeated.",
)
@admin_options
def list_tokens(owners: tuple[Principal, ...], as_json: bool, cluster: ClusterOptions) -> None:
    """List the tokens that this login may see, without their secrets."""
    with cluster.admin() as client:
        found = client.tokens.describe(owners or None)
    if as_json:
        print_json([_without_secret(token) for token in found])
        return
    columns: dict[str, Callable[[Token], str | None]] = {
        "token": lambda one: one.id,
        "owner": lambda one: one.owner,
        "requester": lambda one: one.requester,
        "renewers": lambda one: ", ".join(one.renewers) or "-",
        "issued": lambda one: time_text(one.issued_at_ms),
        "expires": lambda one: time_text(one.expires_at_ms),
        "ends": lambda one: time_text(one.max_ends_at_ms),
    }
    print_rows(found, columns)


@command.command("renew")
@click.argument("token_id", metavar="TOKEN")
@click.option(
    "--period",
    "period_ms",
    type=duration_ms,
    metavar="DURATION",
    show_default="the cluster's",
    help="Time until the token expires, such as 1d.",
)
@admin_options
def renew(token_id: str, period_ms: int | None, as_json: bool, cluster: ClusterOptions) -> None:
    """Move the end of a token."""
    with cluster.admin() as client:
        secret = secret_of(client.tokens, token_id)
        expires_ms = client.tokens.renew(secret, _DEFAULT_MS if period_ms is None else period_ms)
    _print_end(token_id, expires_ms, as_json=as_json)


@command.command("expire")
@click.argument("token_id", metavar="TOKEN")
@click.option(
    "--period",
    "period_ms",
    type=duration_ms,
    metavar="DURATION",
    show_default="at once",
    help="Time until the token expires.",
)
@admin_options
def expire(token_id: str, period_ms: int | None, as_json: bool, cluster: ClusterOptions) -> None:
    """Expire a token, at once or after a while.

    Connections that have logged in with it end when they authenticate again.
    """
    with cluster.admin() as client:
        secret = secret_of(client.tokens, token_id)
        expires_ms = client.tokens.expire(secret, _DEFAULT_MS if period_ms is None else period_ms)
    _print_end(token_id, expires_ms, as_json=as_json)


def secret_of(tokens: Tokens, token_id: str) -> str:
    """Return the secret of a token by its id, so that no secret is an argument of a command."""
    found: Sequence[Token] = tokens.describe()
    for token in found:
        if token.id == token_id:
            return token.secret
    raise HeadraceError(
        f"token {token_id!r} does not exist, or this login may not see it; list the tokens with:"
        " headrace tokens list"
    )


def login_settings(token: Token) -> dict[str, str]:
    """Return the settings by which Java's clients log in with a token."""
    login = jaas_text(
        SCRAM_LOGIN_MODULE, username=token.id, password=token.secret, tokenauth="true"
    )
    return {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": login}


def _without_secret(token: Token) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(token)
    del document["secret"]
    return document


def _print_end(token_id: str, expires_at_ms: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"id": token_id, "expires_at_ms": expires_at_ms})
        return
    is_past = expires_at_ms <= time.time_ns() // 1_000_000
    verb = "expired" if is_past else "expires"
    print_line(f"token {token_id} {verb} at {time_text(expires_at_ms)}")
