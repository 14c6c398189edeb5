"""`headrace profile`: settings for managed Kafka services, as files for `--command-config`."""

from typing import Any

import click
import msgspec

from headrace.cli.options import json_option, options_as
from headrace.cli.output import print_json, print_line, print_table
from headrace.cli.password_options import PasswordOptions, password_options
from headrace.client import connection_profiles as profiles
from headrace.client.connection_profiles import KINDS, Given

_FILE = click.Path(exists=True, dir_okay=False, resolve_path=True)


@click.group("profile", short_help="Write and show settings for managed Kafka services.")
def command() -> None:
    """Write and show settings for managed Kafka services.

    A profile is a file that only its owner can read. Commands, the schema registry and the REST
    proxy read it by --command-config, Python programs by headrace.profile("NAME").

    \b
    headrace profile add shop --kind confluent-cloud --bootstrap pkc-1.aws.confluent.cloud:9092 \\
        --username KEY --password-env CLOUD_SECRET
    headrace topics list --command-config ~/.config/headrace/profiles/shop.properties
    """


def connection_options(command: Any) -> Any:
    """The options of a connection, passed as `given`."""
    command = options_as(Given)(command)
    for option in (
        click.option("--key", type=_FILE, metavar="FILE", help="The key of the certificate."),
        click.option(
            "--certificate", type=_FILE, metavar="FILE", help="A client certificate in PEM."
        ),
        click.option(
            "--ca", type=_FILE, metavar="FILE", help="The authority of the brokers, in PEM."
        ),
        click.option("--region", help="The AWS region of an MSK cluster with IAM."),
        click.option("--username", help="The user, or the API key."),
        click.option("--bootstrap", "-b", metavar="HOST:PORT,...", help="The cluster's address."),
    ):
        command = option(command)
    return command


@command.command("add")
@click.argument("name")
@click.option("--kind", type=click.Choice(list(KINDS)), required=True, help="The service.")
@connection_options
@password_options
@click.option("--replace", is_flag=True, help="Replace an existing profile.")
def add(name: str, kind: str, given: Given, password: PasswordOptions, replace: bool) -> None:
    """Write the settings of a service into a profile.

    The password is asked for, unless an option names a file or a variable. For Event Hubs it is
    the connection string. MSK with IAM signs with the AWS credentials of the process.

    \b
    headrace profile add hub --kind event-hubs --password-env CONNECTION_STRING
    headrace profile add msk --kind msk-iam --bootstrap b-1.example:9098 --region eu-west-1
    """
    needs_password = KINDS[kind].needs_password or (kind == "aiven" and given.username)
    if needs_password:
        secret = password.read(given.username or "the connection string", repeated=False)
        given = msgspec.structs.replace(given, password=secret)
    elif password != PasswordOptions():
        raise click.UsageError(f"{KINDS[kind].title} needs no password with these options")
    settings = profiles.settings_for(kind, given)
    path = profiles.write(name, kind, settings, replace=replace)
    print_line(f"{path} is written; only you can read it")
    print_line(f"  commands  export HEADRACE_COMMAND_CONFIG={path}")
    print_line(f'  Python    headrace.Producer(headrace.profile("{name}"))')
    print_line("")
    print_line(f"{KINDS[kind].title}:")
    for limit in KINDS[kind].limits:
        print_line(f"  - {limit}")


@command.command("list")
@json_option
def list_profiles(as_json: bool) -> None:
    """List the profiles, with their addresses."""
    found = {name: profiles.profile(name).get("bootstrap.servers", "") for name in profiles.names()}
    if as_json:
        print_json([{"name": name, "bootstrap": address} for name, address in found.items()])
    else:
        print_table(("profile", "bootstrap"), list(found.items()))


@command.command("show")
@click.argument("name")
@click.option(
    "--as",
    "form",
    type=click.Choice(["properties", "rest", "spark"]),
    default="properties",
    show_default=True,
    help="Names for commands and clients, for kafka-rest.properties, or for Spark's options.",
)
@click.option("--secrets", is_flag=True, help="Show passwords, instead of [hidden].")
@json_option
def show(name: str, form: str, secrets: bool, as_json: bool) -> None:
    """Show the settings of a profile."""
    found = profiles.profile(name)
    shown = named_for(form, found if secrets else profiles.without_secrets(found))
    if as_json:
        print_json(shown)
    else:
        for line in shown.items():
            print_line("=".join(line))


def named_for(form: str, settings: dict[str, str]) -> dict[str, str]:
    """Return settings under the names that a product expects."""
    prefix = {"properties": "", "rest": "client.", "spark": "kafka."}[form]
    return {
        name if form == "rest" and name == "bootstrap.servers" else f"{prefix}{name}": value
        for name, value in settings.items()
    }
