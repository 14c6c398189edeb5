"""Connection profiles: properties files for managed Kafka services, one per cluster.

A profile has librdkafka's names, which the commands, the clients, the registry, the REST proxy and
Spark's source and sink all read. Only its owner can read the file.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from headrace.client.addresses import parse_addresses
from headrace.errors import HeadraceError
from headrace.settings.properties import read, render

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SECRETS = ("password", "token", "secret", "key.pem")
_PORT = re.compile(r":\d+\s*$")
_EVENT_HUBS_HOST = re.compile(r"Endpoint=sb://([^/;:]+)", re.IGNORECASE)


class InvalidProfile(HeadraceError):
    """A profile lacks something, exists already, or is missing."""


class Given(msgspec.Struct, frozen=True):
    """The options of a profile."""

    bootstrap: str | None = None
    username: str | None = None
    password: str | None = None
    region: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None


class Kind(msgspec.Struct, frozen=True):
    """A service: its login, the options that it needs, and what it cannot do."""

    title: str
    settings: dict[str, str]
    needs: tuple[str, ...]
    limits: tuple[str, ...]

    @property
    def needs_password(self) -> bool:
        return "password" in self.needs


def _login(mechanism: str) -> dict[str, str]:
    return {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism}


_NO_NEW_GROUPS = "It has no share groups (`headrace queue`) and no `group.protocol=consumer`."
_NO_MACHINES = "Log directories and broker settings belong to the service."

KINDS = {
    "event-hubs": Kind(
        "Azure Event Hubs",
        {
            **_login("PLAIN"),
            "sasl.username": "$ConnectionString",
            # The service closes connections that are idle for four minutes.
            "connections.max.idle.ms": "180000",
            "metadata.max.age.ms": "180000",
            "socket.keepalive.enable": "true",
        },
        ("password",),
        (
            "The Basic tier has no endpoint for Kafka.",
            "Rights are Azure's: commands for ACLs, users and quotas are rejected.",
            "Transactions and Kafka Streams need the Premium or Dedicated tier, as a preview.",
            _NO_NEW_GROUPS,
            _NO_MACHINES,
        ),
    ),
    "confluent-cloud": Kind(
        "Confluent Cloud",
        _login("PLAIN"),
        ("bootstrap", "username", "password"),
        (
            "Topics have three replicas; another replication factor is rejected.",
            "Users are service accounts with API keys: `headrace users` is rejected.",
            "Quotas and reassignments are not available by Kafka's protocol.",
            _NO_MACHINES,
        ),
    ),
    "msk-scram": Kind(
        "Amazon MSK with SCRAM",
        _login("SCRAM-SHA-512"),
        ("bootstrap", "username", "password"),
        (
            "Users are in AWS Secrets Manager: `headrace users` is rejected.",
            "MSK Serverless has IAM logins only: use the kind msk-iam.",
            "Static broker settings change by AWS's API only.",
        ),
    ),
    "msk-iam": Kind(
        "Amazon MSK with IAM",
        _login("OAUTHBEARER"),
        ("bootstrap", "region"),
        (
            "Rights are IAM policies: ACLs have no effect on IAM identities.",
            "Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or from"
            " ~/.aws/credentials; the roles of instances are not read.",
            "Spark's stock connector needs AWS's own library; use Headrace's source and sink.",
        ),
    ),
    "hdinsight": Kind(
        "Azure HDInsight",
        {"security.protocol": "PLAINTEXT"},
        ("bootstrap",),
        (
            "Brokers are reachable from their virtual network only.",
            "The Enterprise Security Package logs in by Kerberos, which commands do not support.",
            "Its Kafka is older than 4.0 and uses ZooKeeper. " + _NO_NEW_GROUPS,
            "Disks are managed disks: their number per broker is fixed when the cluster is made.",
        ),
    ),
    "aiven": Kind(
        "Aiven for Apache Kafka",
        {"security.protocol": "SSL"},
        ("bootstrap", "ca"),
        (
            "Users and their rights belong to Aiven's console and API.",
            _NO_MACHINES,
        ),
    ),
    "redpanda-cloud": Kind(
        "Redpanda Cloud",
        _login("SCRAM-SHA-256"),
        ("bootstrap", "username", "password"),
        (_NO_NEW_GROUPS, _NO_MACHINES),
    ),
}


def settings_for(kind: str, given: Given) -> dict[str, str]:
    """Return the properties of a profile; a missing or useless option is an error."""
    service = KINDS[kind]
    needed = set(service.needs)
    if kind == "aiven":
        needed |= {"username", "password"} if given.username else {"certificate", "key"}
    for name in sorted(needed):
        if not getattr(given, name):
            raise InvalidProfile(f"{service.title} needs {_OPTIONS[name]}")
    for name in ("username", "region", "certificate", "key"):
        if getattr(given, name) and name not in needed:
            raise InvalidProfile(f"{service.title} needs no --{name} with these options")
    settings = {"bootstrap.servers": _bootstrap(kind, given), **service.settings}
    if kind == "aiven" and given.username:
        settings |= _login("SCRAM-SHA-256")
    if kind == "hdinsight" and given.ca:
        settings["security.protocol"] = "SSL"
    for name, value in (
        ("sasl.username", given.username),
        ("sasl.password", given.password),
        ("sasl.oauthbearer.aws.region", given.region),
        ("ssl.ca.location", given.ca),
        ("ssl.certificate.location", given.certificate),
        ("ssl.key.location", given.key),
    ):
        if value:
            settings[name] = value
    return settings


def folder() -> Path:
    """Return the folder of profiles, which HEADRACE_PROFILES may name."""
    if named := os.environ.get("HEADRACE_PROFILES"):
        return Path(named)
    config = os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
    return Path(config) / "headrace" / "profiles"


def path_of(name: str) -> Path:
    """Return the file of a profile."""
    if not _NAME.fullmatch(name):
        raise InvalidProfile(
            f"{name!r} is not a name of a profile: letters, digits, dots, dashes and underscores"
        )
    return folder() / f"{name}.properties"


def write(name: str, kind: str, settings: Mapping[str, str], *, replace: bool = False) -> Path:
    """Write a profile that only its owner can read."""
    path = path_of(name)
    if path.exists() and not replace:
        raise InvalidProfile(f"the profile {name} exists; --replace replaces it")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.unlink(missing_ok=True)
    text = render(settings, f"kind={kind}")
    # Created with its mode, because a later change would leave a moment for other users.
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    unfinished.replace(path)
    return path


def names() -> list[str]:
    """Return the names of all profiles."""
    return sorted(path.stem for path in folder().glob("*.properties"))


def profile(name: str) -> dict[str, str]:
    """Return the properties of a profile, for a client."""
    path = path_of(name)
    if not path.exists():
        raise InvalidProfile(f"there is no profile {name} in {folder()}")
    return read(str(path))


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings to show."""
    return {
        name: "[hidden]" if name.endswith(_SECRETS) else value for name, value in settings.items()
    }


def _bootstrap(kind: str, given: Given) -> str:
    if given.bootstrap:
        if not all(_PORT.search(address) for address in given.bootstrap.split(",")):
            raise InvalidProfile(f"--bootstrap must be HOST:PORT,..., not {given.bootstrap}")
        return ",".join(map(str, parse_addresses(given.bootstrap)))
    found = _EVENT_HUBS_HOST.match(given.password or "")
    if kind != "event-hubs" or found is None:
        raise InvalidProfile(
            "the connection string of Event Hubs begins with Endpoint=sb://; or give --bootstrap"
        )
    return f"{found[1]}:9093"


_OPTIONS = {
    "bootstrap": "--bootstrap HOST:PORT",
    "username": "--username",
    "password": "a password",
    "region": "--region, such as eu-west-1",
    "ca": "--ca FILE, the certificate of its authority",
    "certificate": "--certificate FILE, or --username for a login with a password",
    "key": "--key FILE, the key of the certificate",
}
