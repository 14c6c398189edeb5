"""Java's security settings under librdkafka's names, so that one file serves all tools.

A `client.properties` of Kafka's own tools works as it is: the login in `sasl.jaas.config`, and
trust and key stores in PEM.
"""

from collections.abc import Mapping
from typing import Any

from headrace.errors import HeadraceError, InvalidConfig
from headrace.settings.jaas import sole_entry

_LOGIN_MODULES = (".PlainLoginModule", ".ScramLoginModule")

DELEGATION_TOKEN = "sasl.tokenauth"
"""The option tokenauth of a ScramLoginModule, as a property."""

_PEM_NAMES = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}


class InvalidLogin(HeadraceError):
    """A login that only Java clients support."""


def translated(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Rename settings; those under librdkafka's names take precedence."""
    given = dict(properties)
    found: dict[str, Any] = {}
    if "sasl.jaas.config" in given:
        found |= login(str(given.pop("sasl.jaas.config")))
    for java, name in _PEM_NAMES.items():
        if java in given:
            found[name] = given.pop(java)
    found |= _trust(given) | _keys(given)
    return {**found, **given}


def login(text: str) -> dict[str, str]:
    """Parse the login of a JAAS line with PlainLoginModule or ScramLoginModule."""
    try:
        entry = sole_entry(text)
    except InvalidConfig as error:
        raise InvalidLogin(f"sasl.jaas.config: {error}") from None
    options = entry.options
    if not entry.module.endswith(_LOGIN_MODULES) or not {"username", "password"} <= options.keys():
        raise InvalidLogin(
            "sasl.jaas.config needs PlainLoginModule or ScramLoginModule, username and password; or"
            " set sasl.username and sasl.password, or sasl.oauthbearer.token"
        )
    found = {"sasl.username": options["username"], "sasl.password": options["password"]}
    if options.get("tokenauth", "").lower() == "true":
        found[DELEGATION_TOKEN] = "true"
    return found


def _trust(given: dict[str, Any]) -> dict[str, Any]:
    kind = str(given.pop("ssl.truststore.type", "JKS")).upper()
    given.pop("ssl.truststore.password", None)
    if "ssl.truststore.location" not in given:
        return {}
    location = given.pop("ssl.truststore.location")
    if kind != "PEM":
        raise InvalidLogin(
            f"ssl.truststore.location {location} is of type {kind}; give the authorities as PEM by"
            " ssl.ca.location (keytool -exportcert -rfc writes them)"
        )
    return {"ssl.ca.location": location}


def _keys(given: dict[str, Any]) -> dict[str, Any]:
    """Convert a PEM key store, which holds the key and its certificates in one file."""
    if str(given.get("ssl.keystore.type", "")).upper() != "PEM":
        given.pop("ssl.keystore.type", None)
        return {}
    del given["ssl.keystore.type"]
    given.pop("ssl.keystore.password", None)
    if "ssl.keystore.location" not in given:
        return {}
    location = given.pop("ssl.keystore.location")
    return {"ssl.certificate.location": location, "ssl.key.location": location}
