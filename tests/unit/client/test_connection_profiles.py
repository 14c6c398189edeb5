"""Profiles of managed Kafka services."""

import json
import stat
from pathlib import Path

import pytest

import headrace
from headrace.cli.main import main
from headrace.cli.profile import named_for
from headrace.cli.rest import _of_clients
from headrace.client import connection_profiles
from headrace.client.connection_profiles import KINDS, Given, InvalidProfile, settings_for
from headrace.client.properties import names, split
from headrace.client.security import Security
from headrace.rest.settings import settings_of

CONNECTION = "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey=s="
PEM = "/etc/x.pem"
GIVEN = {
    "event-hubs": Given(password=CONNECTION),
    "confluent-cloud": Given(bootstrap="c:9092", username="key", password="s"),
    "msk-scram": Given(bootstrap="m:9096", username="ada", password="s"),
    "msk-iam": Given(bootstrap="m:9098", region="eu-west-1"),
    "hdinsight": Given(bootstrap="h:9092"),
    "aiven": Given(bootstrap="a:1", ca=PEM, certificate=PEM, key=PEM),
    "redpanda-cloud": Given(bootstrap="r:9092", username="ada", password="s"),
}
EXPECTED = {
    "event-hubs": ("SASL_SSL", "PLAIN"),
    "confluent-cloud": ("SASL_SSL", "PLAIN"),
    "msk-scram": ("SASL_SSL", "SCRAM-SHA-512"),
    "msk-iam": ("SASL_SSL", "OAUTHBEARER"),
    "hdinsight": ("PLAINTEXT", None),
    "aiven": ("SSL", None),
    "redpanda-cloud": ("SASL_SSL", "SCRAM-SHA-256"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADRACE_PROFILES", str(tmp_path / "profiles"))
    return tmp_path / "profiles"


@pytest.mark.parametrize("kind", KINDS)
def test_a_profile_has_the_login_of_its_service(kind: str) -> None:
    """CLD-4, CLD-6"""
    settings = settings_for(kind, GIVEN[kind])
    assert (settings["security.protocol"], settings.get("sasl.mechanism")) == EXPECTED[kind]
    assert KINDS[kind].limits


@pytest.mark.parametrize("kind", KINDS)
def test_every_product_accepts_the_settings(kind: str) -> None:
    """CLD-4, CLD-6: names of librdkafka, a login of the wire client, and the proxy's names."""
    settings = settings_for(kind, GIVEN[kind])
    assert set(settings) <= set(names())
    Security.of(settings)
    split(settings)
    assert settings_of(_of_clients(settings)).bootstrap_servers == settings["bootstrap.servers"]


def test_the_address_of_event_hubs_is_in_its_connection_string() -> None:
    """CLD-4"""
    settings = settings_for("event-hubs", GIVEN["event-hubs"])
    assert settings["bootstrap.servers"] == "shop.servicebus.windows.net:9093"
    assert (settings["sasl.username"], settings["sasl.password"]) == (
        "$ConnectionString",
        CONNECTION,
    )


def test_aiven_and_hdinsight_have_a_second_way() -> None:
    """CLD-4, CLD-6"""
    aiven = settings_for("aiven", Given(bootstrap="a:1", ca=PEM, username="u", password="s"))
    assert (aiven["security.protocol"], aiven["sasl.mechanism"]) == ("SASL_SSL", "SCRAM-SHA-256")
    hdinsight = settings_for("hdinsight", Given(bootstrap="h:9093", ca=PEM))
    assert hdinsight["security.protocol"] == "SSL"


@pytest.mark.parametrize(
    ("kind", "given", "reason"),
    [
        ("event-hubs", Given(password="secret"), "begins with Endpoint=sb://"),
        ("event-hubs", Given(), "Azure Event Hubs needs a password"),
        ("confluent-cloud", Given(username="k", password="s"), "needs --bootstrap"),
        ("msk-iam", Given(bootstrap="m:1"), "needs --region"),
        ("msk-scram", Given("m:1", "u", "s", region="eu-west-1"), "needs no --region"),
        ("hdinsight", Given("h:1", "u"), "needs no --username"),
        ("redpanda-cloud", Given("r:1", "u", "s", key=PEM), "needs no --key"),
        ("hdinsight", Given("h"), "--bootstrap must be HOST:PORT,..., not h"),
        ("hdinsight", Given("h:1,i"), "--bootstrap must be HOST:PORT"),
        ("aiven", Given(bootstrap="a:1", ca=PEM), "needs --certificate FILE, or --username"),
        ("aiven", Given(bootstrap="a:1"), "needs --ca FILE"),
    ],
)
def test_a_missing_or_useless_option_is_named(kind: str, given: Given, reason: str) -> None:
    with pytest.raises(InvalidProfile, match=reason):
        settings_for(kind, given)


def test_a_written_profile_belongs_to_its_owner_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """CLD-4"""
    monkeypatch.setenv("HUB", CONNECTION)
    assert main(["profile", "add", "hub", "--kind", "event-hubs", "--password-env", "HUB"]) == 0
    shown = capsys.readouterr().out
    assert "SharedAccessKey" not in shown
    assert "commands for ACLs, users and quotas are rejected" in shown
    assert stat.S_IMODE((folder / "hub.properties").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert headrace.profile("hub")["sasl.password"] == CONNECTION


def test_a_profile_is_replaced_only_on_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    add = ["profile", "add", "hd", "--kind", "hdinsight", "--bootstrap"]
    assert main([*add, "one:9092"]) == 0
    assert main([*add, "two:9092"]) == 1
    assert "--replace replaces it" in capsys.readouterr().err
    assert main([*add, "two:9092", "--replace"]) == 0
    assert headrace.profile("hd")["bootstrap.servers"] == "two:9092"


def test_profiles_are_listed_and_shown_without_secrets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    connection_profiles.write(
        "rp", "redpanda-cloud", settings_for("redpanda-cloud", GIVEN["redpanda-cloud"])
    )
    assert main(["profile", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"name": "rp", "bootstrap": "r:9092"}]
    assert main(["profile", "show", "rp"]) == 0
    assert "sasl.password=[hidden]" in capsys.readouterr().out
    assert main(["profile", "show", "rp", "--secrets", "--as", "spark"]) == 0
    assert "kafka.sasl.password=s\n" in capsys.readouterr().out


def test_names_for_the_proxy_have_its_prefix() -> None:
    settings = {"bootstrap.servers": "a:1", "sasl.username": "u"}
    assert named_for("rest", settings) == {"bootstrap.servers": "a:1", "client.sasl.username": "u"}


@pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "a" * 101])
def test_names_of_profiles_are_names_of_files(name: str) -> None:
    with pytest.raises(InvalidProfile, match="not a name of a profile"):
        headrace.profile(name)


def test_a_missing_profile_is_reported_with_its_folder(folder: Path) -> None:
    with pytest.raises(InvalidProfile, match=f"no profile shop in {folder}"):
        headrace.profile("shop")


def test_a_password_is_rejected_where_it_is_useless(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("P", "p")
    add = ["profile", "add", "hd", "--kind", "hdinsight", "-b", "h:1", "--password-env", "P"]
    assert main(add) == 2
    assert "needs no password" in capsys.readouterr().err
