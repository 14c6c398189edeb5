"""`headrace users`: list, add and remove the users of SCRAM logins, and set their passwords."""

from collections.abc import Sequence

import click
import msgspec

from headrace.cli.options import ClusterOptions, admin_options, confirm, yes_option
from headrace.cli.output import print_json, print_table, report
from headrace.cli.password_options import PasswordOptions, password_options
from headrace.client.admin import Admin
from headrace.client.descriptions import Outcome
from headrace.client.users import ScramUser
from headrace.errors import HeadraceError
from headrace.security.sasl.scram import ITERATIONS_MIN, Mechanism
from headrace.security.scram_credentials import STORED_ITERATIONS_MAX

_MECHANISMS = click.Choice([one.value for one in Mechanism], case_sensitive=False)

_mechanisms_option = click.option(
    "--mechanism",
    "mechanisms",
    type=_MECHANISMS,
    multiple=True,
    help="Only this mechanism; may be repeated.",
)
_iterations_option = click.option(
    "--iterations",
    type=click.IntRange(ITERATIONS_MIN, STORED_ITERATIONS_MAX),
    default=ITERATIONS_MIN,
    show_default=True,
    help="Iterations of the hash.",
)


@click.group("users", short_help="List, add and remove users of SCRAM logins.")
def command() -> None:
    """List, add and remove users of SCRAM logins, and set their passwords.

    The cluster stores salted hashes, and the password does not leave this machine. Rights are
    given by `headrace acls`.

    \b
    headrace users add ada
    headrace users set-password ada --password-file ada.password
    headrace users list
    """


@command.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@admin_options
def list_users(names: tuple[str, ...], as_json: bool, cluster: ClusterOptions) -> None:
    """List all users, or the named ones, with their mechanisms."""
    with cluster.admin() as client:
        found = client.users.describe(names)
    if as_json:
        print_json(found)
        return
    print_table(
        ("user", "mechanism", "iterations"),
        [
            (user.name, mechanism, str(iterations))
            for user in found
            for mechanism, iterations in sorted(user.credentials.items())
        ],
    )


@command.command("add")
@click.argument("name")
@click.option(
    "--mechanism",
    "mechanisms",
    type=_MECHANISMS,
    multiple=True,
    default=[Mechanism.SHA_512.value],
    show_default=True,
    help="Mechanism of the login; may be repeated.",
)
@_iterations_option
@password_options
@admin_options
def add_user(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password: PasswordOptions,
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Add a user, and ask for the password.

    \b
    headrace users add ada
    printenv ADA_PASSWORD | headrace users add ada --password-stdin
    """
    wanted = [Mechanism(one) for one in mechanisms]
    with cluster.admin() as client:
        check_absent(client.users.describe([name]), wanted)
        outcome = _set_password(client, name, password, wanted, iterations)
    return report([outcome], done="added", as_json=as_json)


@command.command("set-password")
@click.argument("name")
@_mechanisms_option
@_iterations_option
@password_options
@admin_options
def set_password(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password: PasswordOptions,
    as_json: bool,
    cluster: ClusterOptions,
) -> int:
    """Set the password of a user for each mechanism that the user has.

    Open connections stay until they authenticate again.

    \b
    headrace users set-password ada
    """
    with cluster.admin() as client:
        wanted = mechanisms_of(client.users.describe([name]), name, mechanisms)
        outcome = _set_password(client, name, password, wanted, iterations)
    return report([outcome], done="has a new password", as_json=as_json)


@command.command("remove")
@click.argument("name")
@_mechanisms_option
@yes_option
@admin_options
def remove_user(
    name: str, mechanisms: tuple[str, ...], yes: bool, as_json: bool, cluster: ClusterOptions
) -> int:
    """Remove a user, or some of the mechanisms of a user.

    The user's rules and quotas stay: see `headrace acls` and `headrace quotas`.
    """
    with cluster.admin() as client:
        wanted = mechanisms_of(client.users.describe([name]), name, mechanisms)
        confirm(f"Remove {name} with {', '.join(wanted)}?", yes=yes)
        outcomes = [client.users.remove(name, one) for one in wanted]
    return report([joined(outcomes)], done="removed", as_json=as_json)


def check_absent(found: Sequence[ScramUser], wanted: Sequence[Mechanism]) -> None:
    """Raise if the user has one of the mechanisms already."""
    for user in found:
        if taken := [one.value for one in wanted if one.value in user.credentials]:
            raise HeadraceError(
                f"user {user.name!r} has {', '.join(taken)} already; change the password with:"
                f" headrace users set-password {user.name}"
            )


def mechanisms_of(found: Sequence[ScramUser], name: str, wanted: Sequence[str]) -> list[Mechanism]:
    """Return the mechanisms to change: the wanted ones, or all of the user."""
    if not found:
        raise HeadraceError(
            f"user {name!r} does not exist; list the users with: headrace users list"
        )
    present = [one for one in Mechanism if one.value in found[0].credentials]
    for one in wanted:
        if one not in present:
            raise HeadraceError(f"user {name!r} has no {one}; it has {', '.join(present)}")
    return [one for one in present if not wanted or one.value in wanted]


def _set_password(
    client: Admin,
    name: str,
    password: PasswordOptions,
    mechanisms: Sequence[Mechanism],
    iterations: int,
) -> Outcome:
    """Set one password for several mechanisms."""
    text = password.read(name)
    return joined(
        [client.users.set_password(name, text, one, iterations=iterations) for one in mechanisms]
    )


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the first failure, or the success of all mechanisms."""
    failed = next((one for one in outcomes if one.error), outcomes[0])
    return msgspec.structs.replace(failed, name=f"user {failed.name}")
