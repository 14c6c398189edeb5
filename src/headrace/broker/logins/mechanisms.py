"""The mechanisms of the SASL listeners of one node, built from its settings."""

import hmac
import logging
import secrets
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from headrace.broker.logins.sources import WatchedKeys, WatchedUsers
from headrace.security.sasl.authentication import Mechanisms
from headrace.security.sasl.jwks import UnknownKey
from headrace.security.sasl.oauthbearer_server import (
    OAuthBearerServer,
    TokenRules,
    UnsecuredRules,
    login_by_claims,
    unsecured_rules,
    validate_unsecured,
)
from headrace.security.sasl.plain import PlainServer, users_of
from headrace.security.sasl.scram import Mechanism
from headrace.security.sasl.scram_server import ScramServer
from headrace.settings.listener_logins import mechanisms_of

if TYPE_CHECKING:
    from headrace.runtime.clock import Clock
    from headrace.runtime.tasks import Tasks
    from headrace.security.sasl.scram_server import ScramCredentials
    from headrace.security.sasl.server import Login, NewExchange
    from headrace.settings.broker import BrokerSettings
    from headrace.settings.listener_logins import MechanismSettings

_log = logging.getLogger(__name__)

_NONCE_BYTES = 24


class LoginMechanisms:
    """Builds the mechanisms of listeners; files and key sets are shared between listeners."""

    def __init__(
        self,
        settings: "BrokerSettings",
        credentials: "ScramCredentials",
        clock: "Clock",
        decoy_key: Callable[[], bytes],
    ) -> None:
        """`decoy_key` hides which SCRAM users exist; it is the same on all nodes of a cluster.

        It is computed at the first login, because the cluster may not be known before.
        """
        self._settings = settings
        self._credentials = credentials
        self._clock = clock
        self._decoy_key = decoy_key
        self._users: dict[str, WatchedUsers] = {}
        self._keys: dict[str, WatchedKeys] = {}

    def of(self, listener: str) -> Mechanisms:
        """Return the mechanisms of a SASL listener."""
        exchanges: dict[str, NewExchange] = {}
        max_reauth_ms: dict[str, int] = {}
        for mechanism in mechanisms_of(self._settings, listener):
            exchanges[mechanism.name] = self._exchange(mechanism)
            max_reauth_ms[mechanism.name] = mechanism.value("connections.max.reauth.ms")
        return Mechanisms(exchanges, max_reauth_ms)

    def watch(self, tasks: "Tasks") -> None:
        """Watch the files and key sets from now on."""
        for users in self._users.values():
            users.watch(tasks)
        for keys in self._keys.values():
            keys.watch(tasks)

    def _exchange(self, mechanism: "MechanismSettings") -> "NewExchange":
        match mechanism.name:
            case "PLAIN":
                return self._plain(mechanism)
            case "OAUTHBEARER":
                return self._oauthbearer(mechanism)
            case "GSSAPI":
                return _gssapi(mechanism)
            case name:
                return self._scram(Mechanism(name))

    def _plain(self, mechanism: "MechanismSettings") -> "NewExchange":
        named = users_of(mechanism.options)
        path = mechanism.value("headrace.sasl.plain.users.file")
        if not path:
            return partial(PlainServer, named.get)
        if path not in self._users:
            self._users[path] = WatchedUsers(path)
        return partial(PlainServer, _either(named, self._users[path]))

    def _scram(self, mechanism: Mechanism) -> "NewExchange":
        return lambda: ScramServer(
            mechanism,
            self._credentials,
            decoy_key=self._decoy_key(),
            new_nonce=partial(secrets.token_urlsafe, _NONCE_BYTES),
            now_ms=self._clock.now_ms,
        )

    def _oauthbearer(self, mechanism: "MechanismSettings") -> "NewExchange":
        listener = mechanism.listener
        url = mechanism.value("sasl.oauthbearer.jwks.endpoint.url")
        if not url:
            rules = unsecured_rules(mechanism.options)
            assert rules is not None, "the settings were checked"
            validate_any = partial(self._unsecured, rules)
            _log.warning("unsigned tokens accepted", extra={"listener": listener})
            return partial(OAuthBearerServer, validate_any, partial(_token_rejected, listener))
        if url not in self._keys:
            self._keys[url] = WatchedKeys(
                url,
                refresh_ms=mechanism.value("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
                backoff_ms=mechanism.value("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
                backoff_max_ms=mechanism.value(
                    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"
                ),
            )
        validate = partial(self._signed, self._keys[url], _token_rules(mechanism))
        return partial(OAuthBearerServer, validate, partial(_token_rejected, listener))

    def _unsecured(self, rules: UnsecuredRules, token: str) -> "Login":
        return validate_unsecured(token, rules, self._clock.now_ms())

    def _signed(self, source: WatchedKeys, rules: TokenRules, token: str) -> "Login":
        now_ms = self._clock.now_ms()
        try:
            claims = source.keys.claims_of(token)
        except UnknownKey as error:
            source.missing(error.key_id, now_ms)
            raise
        return login_by_claims(claims, rules, now_ms)


def decoy_key(cluster_id: str, secret: str | None) -> bytes:
    """Return the key of the salts of unknown users.

    It is the same on all nodes. Without a secret of the cluster, any client that has the id of the
    cluster can compute these salts; only clients that are logged in can ask for the id.
    """
    return hmac.digest((secret or "").encode(), cluster_id.encode(), "sha256")


def _either(named: Mapping[str, str], file: WatchedUsers) -> Callable[[str], str | None]:
    """Look a user up in the JAAS options, then in the file."""

    def password_of(name: str) -> str | None:
        password = named.get(name)
        return password if password is not None else file.users.get(name)

    return password_of


def _gssapi(mechanism: "MechanismSettings") -> "NewExchange":
    from headrace.security.sasl.gssapi_server import Acceptor, GssapiServer, default_realm
    from headrace.security.sasl.kerberos_names import KerberosRules

    options = mechanism.options
    acceptor = Acceptor(options["keyTab"], options.get("principal"))
    rules = mechanism.value("sasl.kerberos.principal.to.local.rules")
    return partial(GssapiServer, acceptor.context, KerberosRules(rules, default_realm()))


def _token_rules(mechanism: "MechanismSettings") -> TokenRules:
    return TokenRules(
        expected_issuer=mechanism.value("sasl.oauthbearer.expected.issuer"),
        expected_audience=mechanism.value("sasl.oauthbearer.expected.audience"),
        clock_skew_seconds=mechanism.value("sasl.oauthbearer.clock.skew.seconds"),
        scope_claim_name=mechanism.value("sasl.oauthbearer.scope.claim.name"),
        sub_claim_name=mechanism.value("sasl.oauthbearer.sub.claim.name"),
        groups_claim_name=mechanism.value("headrace.sasl.oauthbearer.groups.claim.name"),
    )


def _token_rejected(listener: str, reason: str) -> None:
    _log.debug("token rejected", extra={"listener": listener, "error": reason})
