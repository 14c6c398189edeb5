"""Writes `docs/reference/settings.md`: the properties of the broker, topics, groups and metrics.

Names, types, defaults and meanings come from `headrace.settings`, which the broker itself reads.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from headrace.settings.broker import BROKER_CONFIGS
from headrace.settings.client_metrics import CLIENT_METRICS_CONFIGS
from headrace.settings.definitions import ConfigDefinition, UpdateMode
from headrace.settings.group import GROUP_CONFIGS
from headrace.settings.topic import TOPIC_CONFIGS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "settings.md"
CHANGES = {
    UpdateMode.READ_ONLY: "restart",
    UpdateMode.PER_BROKER: "per broker",
    UpdateMode.CLUSTER_WIDE: "at run time",
    UpdateMode.PER_LISTENER: "per listener",
}
HEAD = """# Settings

This page lists the properties of the broker, of topics, of groups and of client metrics.

```sh
headrace up --config server.properties --set log.retention.hours=24
headrace configs alter topic orders --set retention.ms=3600000
```

The names are Kafka's, and Kafka's own `server.properties` works. `--data`, `--listen`, `--metrics`
and `--set` override the file. A misspelt name is an error that names the nearest property. A
property of Kafka that has no effect here is accepted with a warning that has the reason.

A value may come from a file, a directory or the environment, so that secrets stay out of the file:

```properties
config.providers=file,env
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
config.providers.file.param.allowed.paths=/etc/headrace
config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
delegation.token.secret.key=${file:/etc/headrace/secrets.properties:tokens}
broker.rack=${env:RACK}
```

Kafka's DirectoryConfigProvider reads whole files: `${dir:/run/secrets:password}`. A reference
without a value is an error, where Kafka uses its text as the value. Values are read at the start.

`python tools/settings.py` writes this page.
"""


def render() -> str:
    """Return the page."""
    own = [one for name, one in BROKER_CONFIGS.items() if name.startswith("headrace.")]
    kafka = [one for name, one in BROKER_CONFIGS.items() if not name.startswith("headrace.")]
    parts = (
        section("Headrace's own properties of the broker", broker_rows(own)),
        section("Broker", broker_rows(kafka)),
        section("Topics", rows(TOPIC_CONFIGS)),
        section("Groups", rows(GROUP_CONFIGS)),
        section("Client metrics subscriptions", rows(CLIENT_METRICS_CONFIGS)),
    )
    return HEAD + "".join(line + "\n" for part in parts for line in part)


def section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"## {title}", "")
    if title == "Broker":
        yield from (
            "The last column is the way to change a property: a `restart`, or `at run time` by",
            "`headrace configs`, for all brokers or only `per broker`.",
            "",
        )
    if title in {"Topics", "Groups"}:
        yield from ("A property in the column of defaults is the broker's, which applies.", "")
    yield from lines


def broker_rows(definitions: Iterable[ConfigDefinition]) -> Iterator[str]:
    yield from (
        "| property | type | default | meaning | change |",
        "| --- | --- | --- | --- | --- |",
    )
    for one in shown(definitions):
        yield f"{row(one)} {CHANGES[one.update_mode]} |"


def rows(definitions: Mapping[str, ConfigDefinition]) -> Iterator[str]:
    yield from ("| property | type | default | meaning |", "| --- | --- | --- | --- |")
    for one in shown(definitions.values()):
        yield row(one)


def row(one: ConfigDefinition) -> str:
    meaning = one.documentation.replace("|", "\\|")
    return f"| `{one.name}` | {one.type.name.lower()} | {default(one)} | {meaning} |"


def shown(definitions: Iterable[ConfigDefinition]) -> list[ConfigDefinition]:
    public = [one for one in definitions if not one.is_internal]
    return sorted(public, key=lambda one: one.name)


def default(one: ConfigDefinition) -> str:
    if one.synonyms:
        return f"`{one.synonyms[0]}`"
    text = one.render(one.default)
    return f"`{text}`" if text else ""


def main() -> int:
    """Write the page, or with --check report whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the page is not current")
    if parser.parse_args().check:
        return 0 if PAGE.read_text() == render() else 1
    PAGE.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
