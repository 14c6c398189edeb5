"""The address of commands: an option, the environment, a profile, or the default."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from headrace.cli.options import ClusterOptions, cluster_options


@click.command()
@cluster_options
def show(cluster: ClusterOptions) -> None:
    """Print the address."""
    click.echo(cluster.bootstrap)


def shown(*arguments: str, **environment: str) -> str:
    done = CliRunner(env={"HEADRACE_BOOTSTRAP": None, "HEADRACE_COMMAND_CONFIG": None}).invoke(
        show, list(arguments), env=environment, catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.output.strip()


@pytest.fixture
def profile(tmp_path: Path) -> str:
    file = tmp_path / "it.properties"
    file.write_text("bootstrap.servers=cloud:9092\n")
    return str(file)


def test_the_default_is_this_machine() -> None:
    assert shown() == "127.0.0.1:9092"


def test_a_profile_has_the_address(profile: str) -> None:
    """CLD-4"""
    assert shown("--command-config", profile) == "cloud:9092"
    assert shown(HEADRACE_COMMAND_CONFIG=profile) == "cloud:9092"


def test_an_option_or_the_environment_replaces_the_address_of_a_profile(profile: str) -> None:
    """CLD-4"""
    assert shown("--command-config", profile, "--bootstrap", "a:1") == "a:1"
    assert shown("--command-config", profile, HEADRACE_BOOTSTRAP="b:2") == "b:2"


def test_a_profile_without_address_leaves_the_default(tmp_path: Path) -> None:
    file = tmp_path / "login.properties"
    file.write_text("sasl.username=ada\n")
    assert shown("--command-config", str(file)) == "127.0.0.1:9092"
