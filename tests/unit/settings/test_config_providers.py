"""References to files, directories and variables in the values of properties."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.errors import InvalidConfig
from headrace.settings.broker_layers import BrokerLayers
from headrace.settings.broker_loading import load
from headrace.settings.config_providers import resolve
from headrace.settings.describe import describe_broker

PACKAGE = "org.apache.kafka.common.config.provider"
PROVIDERS = {
    "config.providers": "file, dir,env",
    "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
    "config.providers.dir.class": f"{PACKAGE}.DirectoryConfigProvider",
    "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
}
ENVIRONMENT = {"RACK": "east", "HIDDEN": "value"}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "all.properties").write_text("rack=west\npassword = a\\tb=c\n")
    (tmp_path / "rack").write_text("north")
    (tmp_path / "password").write_text("two\nlines\n")
    (tmp_path / "below").mkdir()
    return tmp_path


def resolved(text: str, **params: str) -> str:
    """The value of a property; keywords are parameters of a provider, as in file__allowed_paths."""
    properties = {**PROVIDERS, **named(params), "broker.rack": text}
    found = resolve(properties, ENVIRONMENT)
    if found.mistakes:
        raise InvalidConfig("\n".join(found.mistakes.values()))
    return found.properties["broker.rack"]


def named(params: Mapping[str, str]) -> dict[str, str]:
    return {
        f"config.providers.{name.replace('__', '.param.').replace('_', '.')}": text
        for name, text in params.items()
    }


def test_values_come_from_files_directories_and_variables(secrets: Path) -> None:
    """SEC-9: secrets are not in the properties file."""
    file = secrets / "all.properties"
    assert resolved(f"${{file:{file}:rack}}") == "west"
    assert resolved(f"${{file:{file}:password}}") == "a\tb=c"
    assert resolved(f"${{dir:{secrets}:password}}") == "two\nlines\n"
    assert resolved("${env:RACK}") == "east"


def test_a_value_may_have_several_references_and_other_text(secrets: Path) -> None:
    text = f"a-${{env:RACK}}-${{dir:{secrets}:rack}}-$z ${{x}}"
    assert resolved(text) == "a-east-north-$z ${x}"


def test_the_content_of_a_value_is_not_resolved_again(secrets: Path) -> None:
    (secrets / "loop").write_text("${env:RACK}")
    assert resolved(f"${{dir:{secrets}:loop}}") == "${env:RACK}"


def test_a_key_may_contain_colons(secrets: Path) -> None:
    (secrets / "all.properties").write_text("a\\:b=1\n")
    assert resolved(f"${{file:{secrets}/all.properties:a:b}}") == "1"


def test_without_providers_every_value_stays_as_it_is() -> None:
    properties = {"broker.rack": "${env:RACK}"}
    assert resolve(properties, ENVIRONMENT).properties == properties


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${vault:secret:key}", "the provider 'vault', and config.providers has file, dir, env"),
        ("${file:SECRETS/none.properties:rack}", "cannot read .*No such file"),
        ("${file:SECRETS/all.properties:none}", "no key 'none'"),
        ("${file::rack}", "has no path"),
        ("${file:rack}", "has no path"),
        ("${dir:SECRETS:none}", "no file 'none'"),
        ("${dir:SECRETS:below}", "no file 'below'"),
        ("${dir:SECRETS/below:../rack}", "no file"),
        ("${dir:SECRETS/none:rack}", "not a directory"),
        ("${env:NONE}", "the variable is not set"),
        ("${env:path:RACK}", "variables have no path"),
    ],
)
def test_a_reference_without_a_value_is_an_error(secrets: Path, text: str, message: str) -> None:
    reference = text.replace("SECRETS", str(secrets))
    with pytest.raises(InvalidConfig, match=message) as caught:
        resolved(reference)
    assert reference in str(caught.value)


def test_only_allowed_paths_are_read(secrets: Path) -> None:
    below, file = secrets / "below", secrets / "all.properties"
    (below / "rack").write_text("south")
    assert resolved(f"${{dir:{below}:rack}}", dir__allowed_paths=f"/proc,{below}/") == "south"
    assert resolved(f"${{file:{file}:rack}}", file__allowed_paths=str(file)) == "west"
    for path in (f"{secrets}", f"{below}/..", f"{below}-more"):
        with pytest.raises(InvalidConfig, match=r"dir\.param\.allowed\.paths does not allow"):
            resolved(f"${{dir:{path}:rack}}", dir__allowed_paths=str(below))


@pytest.mark.parametrize(
    ("allowed", "message"),
    [("relative", "is not an absolute path"), ("/none/of/these", "does not exist")],
)
def test_allowed_paths_are_absolute_and_exist(allowed: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        resolved("x", file__allowed_paths=allowed)


def test_only_variables_of_the_pattern_are_read() -> None:
    assert resolved("${env:RACK}", env__allowlist_pattern="R.*|X") == "east"
    with pytest.raises(InvalidConfig, match=r"env\.param\.allowlist\.pattern does not allow"):
        resolved("${env:HIDDEN}", env__allowlist_pattern="HIDD")
    with pytest.raises(InvalidConfig, match="not a regular expression"):
        resolved("x", env__allowlist_pattern="(")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("file.class", "com.example.Vault", "com.example.Vault is not a known class; use .*File"),
        ("file.class", "", "file.class is not set"),
        ("file.param.allowed.path", "/", "not a parameter .* Did you mean allowed.paths"),
        ("env.param.allowed.paths", "/", "it has allowlist.pattern"),
    ],
)
def test_a_wrong_provider_is_an_error(name: str, text: str, message: str) -> None:
    found = resolve({**PROVIDERS, f"config.providers.{name}": text}, {})
    (mistake,) = found.mistakes.values()
    with pytest.raises(InvalidConfig, match=message):
        raise InvalidConfig(mistake)


def test_settings_are_typed_after_their_references_are_replaced() -> None:
    properties = {**PROVIDERS, "num.partitions": "${env:COUNT}", "broker.rack": "${env:RACK}"}
    settings, warnings = load(properties, environment={"COUNT": "7", "RACK": "east"})
    assert (settings.num_partitions, settings.broker_rack, warnings) == (7, "east", [])
    assert settings.config_providers == ("file", "dir", "env")


def test_all_mistakes_are_reported_with_their_places() -> None:
    properties = {**PROVIDERS, "num.partitions": "${env:A}", "broker.rack": "${env:B}"}
    with pytest.raises(InvalidConfig) as caught:
        load(properties, {"broker.rack": "server.properties line 7"}, {})
    first, second = str(caught.value).splitlines()
    assert first.startswith("num.partitions: ${env:A} has no value")
    assert second.startswith("server.properties line 7: broker.rack: ${env:B} has no value")


def test_no_error_shows_a_value_of_a_provider() -> None:
    """SEC-9: a reference may name the wrong secret."""
    with pytest.raises(InvalidConfig) as caught:
        load({**PROVIDERS, "num.partitions": "${env:KEY}"}, environment={"KEY": "s3cret"})
    assert str(caught.value) == "num.partitions has an invalid value in ${env:KEY}"


def test_a_secret_of_a_provider_is_not_described(secrets: Path) -> None:
    key = "delegation.token.secret.key"
    settings, _ = load({**PROVIDERS, key: f"${{dir:{secrets}:password}}"}, environment={})
    assert settings.delegation_token_secret_key == "two\nlines"
    (described,) = [one for one in describe_broker(BrokerLayers(settings)) if one.name == key]
    assert described.value is None
    assert "two" not in repr(settings)
