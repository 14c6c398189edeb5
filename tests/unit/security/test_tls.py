"""TLS contexts: from stores of every kind, and replaced only by certificates that work."""

import ssl
import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import msgspec
import pytest

from headrace.errors import InvalidTls
from headrace.security.principals import ANONYMOUS, Principal
from headrace.security.tls import ListenerTls
from headrace.settings.listener_security import TlsSettings
from tests.builders.certificates import Authority, Owned

AUTHORITY = Authority()


def settings_of(owned: Owned, authority: Authority = AUTHORITY, **changes: Any) -> TlsSettings:
    settings = TlsSettings(
        keystore_type="PEM",
        keystore_key=owned.key_pem(),
        keystore_certificate_chain=owned.certificate_pem,
        truststore_type="PEM",
        truststore_certificates=authority.pem,
        client_auth="required",
    )
    return msgspec.structs.replace(settings, **changes)


def listener_of(settings: TlsSettings, *, is_between_nodes: bool = False) -> ListenerTls:
    return ListenerTls("OUTSIDE", settings, is_between_nodes=is_between_nodes)


def connect(
    server: ListenerTls, client: ListenerTls, host: str = "localhost"
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Return both ends of a connection in memory: the server's, then the client's."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        server.server.wrap_bio(to_server, to_client, server_side=True),
        client.client.wrap_bio(to_client, to_server, server_hostname=host),
    )
    done: set[ssl.SSLObject] = set()
    while len(done) < len(ends):
        for end in reversed(ends):
            try:
                end.do_handshake()
                done.add(end)
            except ssl.SSLWantReadError:
                continue
    return ends


def test_the_principal_of_a_client_is_the_subject_of_its_certificate() -> None:
    """SEC-3."""
    server = listener_of(settings_of(AUTHORITY.issue()))
    ada = AUTHORITY.issue([("O", "Acme, Inc."), ("CN", "ada")], hosts=())
    ours, _ = connect(server, listener_of(settings_of(ada)))
    assert server.principal_of(ours) == Principal("User", r"CN=ada,O=Acme\, Inc.")


def test_mapping_rules_name_the_principal() -> None:
    """SEC-3."""
    rules = "RULE:^CN=([^,]+),.*$/$1/U,DEFAULT"
    server = listener_of(settings_of(AUTHORITY.issue(), principal_mapping_rules=rules))
    ada = AUTHORITY.issue([("O", "Acme"), ("CN", "ada")], hosts=())
    ours, _ = connect(server, listener_of(settings_of(ada)))
    assert server.principal_of(ours).name == "ADA"


def test_a_client_without_a_certificate_is_anonymous_where_none_is_required() -> None:
    """SEC-3."""
    server = listener_of(settings_of(AUTHORITY.issue(), client_auth="requested"))
    client = listener_of(TlsSettings(truststore_type="PEM", truststore_certificates=AUTHORITY.pem))
    ours, _ = connect(server, client)
    assert server.principal_of(ours) == ANONYMOUS


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        (TlsSettings(truststore_type="PEM", truststore_certificates=AUTHORITY.pem), "PEER_DID_NOT"),
        (settings_of(Authority("foreign").issue()), "CERTIFICATE_VERIFY_FAILED"),
        (settings_of(AUTHORITY.issue(expired=True)), "CERTIFICATE_VERIFY_FAILED"),
    ],
    ids=["missing", "foreign", "expired"],
)
def test_a_server_refuses_invalid_certificates(client: TlsSettings, reason: str) -> None:
    """SEC-3."""
    server = listener_of(settings_of(AUTHORITY.issue()))
    with pytest.raises(ssl.SSLError, match=reason):
        connect(server, listener_of(client))


@pytest.mark.parametrize(
    ("owned", "host"),
    [
        (AUTHORITY.issue(expired=True), "localhost"),
        (Authority("foreign").issue(), "localhost"),
        (AUTHORITY.issue(), "elsewhere"),
    ],
    ids=["expired", "foreign", "wrong host"],
)
def test_a_client_refuses_invalid_certificates(owned: Owned, host: str) -> None:
    """SEC-2."""
    server = listener_of(settings_of(owned, client_auth="none"))
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(server, listener_of(settings_of(AUTHORITY.issue())), host)


def test_host_names_are_not_checked_if_the_setting_is_empty() -> None:
    """SEC-2."""
    server = listener_of(settings_of(AUTHORITY.issue()))
    client = listener_of(settings_of(AUTHORITY.issue(), endpoint_identification_algorithm=""))
    connect(server, client, "elsewhere")


def test_a_revoked_certificate_is_refused(tmp_path: Path) -> None:
    """SEC-2."""
    ada, bob = AUTHORITY.issue("ada"), AUTHORITY.issue("bob")
    revoked = tmp_path / "revoked.pem"
    revoked.write_text(AUTHORITY.revoked(bob))
    server = listener_of(settings_of(AUTHORITY.issue(), crl_location=str(revoked)))
    connect(server, listener_of(settings_of(ada)))
    with pytest.raises(ssl.SSLError, match="certificate revoked"):
        connect(server, listener_of(settings_of(bob)))


@pytest.mark.parametrize(
    ("changes", "version"),
    [
        ({}, "TLSv1.3"),
        ({"protocol": "TLSv1.2"}, "TLSv1.2"),
        ({"enabled_protocols": ("TLSv1.2",)}, "TLSv1.2"),
        ({"cipher_suites": ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",)}, "TLSv1.2"),
        ({"cipher_suites": ("TLS_AES_256_GCM_SHA384",)}, "TLSv1.3"),
    ],
)
def test_versions_and_suites_are_restricted(changes: dict[str, Any], version: str) -> None:
    """SEC-2."""
    server = listener_of(settings_of(AUTHORITY.issue(), **changes))
    ours, _ = connect(server, listener_of(settings_of(AUTHORITY.issue())))
    assert ours.version() == version
    cipher = ours.cipher()
    assert cipher is not None
    if version == "TLSv1.2" and "cipher_suites" in changes:
        assert cipher[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"


def test_an_unknown_cipher_suite_is_refused() -> None:
    with pytest.raises(InvalidTls, match=r"ssl\.cipher\.suites: no suite of NULL-ROT13"):
        listener_of(settings_of(AUTHORITY.issue(), cipher_suites=("NULL-ROT13",)))


# --- stores -------------------------------------------------------------------------------------


def works_with(settings: TlsSettings) -> bool:
    connect(listener_of(settings), listener_of(settings_of(AUTHORITY.issue())))
    return True


def test_keys_and_authorities_come_from_pem_files(tmp_path: Path) -> None:
    """SEC-2."""
    settings = TlsSettings(
        client_auth="required",
        keystore_type="PEM",
        keystore_location=str(AUTHORITY.issue().write(tmp_path / "own.pem")),
        truststore_type="PEM",
        truststore_location=str(AUTHORITY.write(tmp_path / "ca.pem")),
    )
    assert works_with(settings)


def test_an_encrypted_key_needs_its_password() -> None:
    """SEC-2."""
    owned = AUTHORITY.issue()
    settings = settings_of(owned, keystore_key=owned.key_pem("pw"), key_password="pw")
    assert works_with(settings)
    with pytest.raises(InvalidTls):
        listener_of(settings_of(owned, keystore_key=owned.key_pem("pw"), key_password="wrong"))


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_keys_come_from_pkcs12_also_under_the_default_type(tmp_path: Path, kind: str) -> None:
    """SEC-2: Java reads PKCS#12 under both names."""
    path = AUTHORITY.issue().write_pkcs12(tmp_path / "own.p12", "secret")
    settings = TlsSettings(
        client_auth="required",
        keystore_type=kind,
        keystore_location=str(path),
        keystore_password="secret",
        truststore_type=kind,
        truststore_location=str(path),
        truststore_password="secret",
    )
    assert works_with(settings)


@pytest.mark.skipif(which("keytool") is None, reason="needs a JDK")
def test_keys_come_from_stores_of_java(tmp_path: Path) -> None:
    """SEC-2: a JKS store with a password of its own for the key."""
    source = AUTHORITY.issue().write_pkcs12(tmp_path / "own.p12", "secret")
    keys, trusted = tmp_path / "own.jks", tmp_path / "trusted.jks"
    keytool(
        *("-importkeystore", "-srckeystore", source, "-srcstorepass", "secret"),
        *("-destkeystore", keys, "-deststoretype", "JKS", "-deststorepass", "storepass"),
        *("-srcalias", "own", "-destkeypass", "keypass"),
    )
    authority = AUTHORITY.write(tmp_path / "ca.pem")
    keytool(
        *("-importcert", "-noprompt", "-file", authority, "-alias", "ca", "-storetype", "JKS"),
        *("-keystore", trusted, "-storepass", "storepass"),
    )
    settings = TlsSettings(
        client_auth="required",
        keystore_location=str(keys),
        keystore_password="storepass",
        key_password="keypass",
        truststore_location=str(trusted),
        truststore_password="storepass",
    )
    assert works_with(settings)
    with pytest.raises(InvalidTls, match=r"ssl\.key\.password is wrong"):
        listener_of(msgspec.structs.replace(settings, key_password="x"))
    with pytest.raises(InvalidTls, match="the password is wrong or the store is damaged"):
        listener_of(msgspec.structs.replace(settings, keystore_password="x"))


def keytool(*arguments: object) -> None:
    subprocess.run(["keytool", *map(str, arguments)], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("content", "changes", "message"),
    [
        (None, {"keystore_type": "PEM"}, "cannot be read: No such file"),
        ("nothing", {"keystore_type": "PEM"}, "has no private key in PEM form"),
        ("-----BEGIN PRIVATE KEY-----", {"keystore_type": "PEM"}, "TLS of listener OUTSIDE"),
        ("-----BEGIN X-----", {"keystore_password": "p"}, r"set ssl\.keystore\.type=PEM"),
        ("nothing", {"keystore_password": "p"}, "is not a JKS store"),
        ("\x30\x01", {"keystore_password": "p"}, "wrong or the store is damaged"),
        ("\x30\x01", {"keystore_password": "p", "keystore_type": "PKCS12"}, "store is damaged"),
    ],
)
def test_unusable_stores_are_errors_that_name_them(
    tmp_path: Path, content: str | None, changes: dict[str, Any], message: str
) -> None:
    """SEC-2."""
    path = tmp_path / "own"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidTls, match=message):
        listener_of(TlsSettings(keystore_location=str(path), **changes))


# --- replacement --------------------------------------------------------------------------------


def test_a_new_certificate_replaces_the_old_one() -> None:
    """SEC-2."""
    listener = listener_of(settings_of(AUTHORITY.issue()))
    new = AUTHORITY.issue()
    assert listener.replace(settings_of(new))
    _, theirs = connect(listener, listener_of(settings_of(AUTHORITY.issue())))
    assert theirs.getpeercert(binary_form=True) == new.der
    assert not listener.replace(settings_of(new))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (settings_of(AUTHORITY.issue("other")), r"its subject is CN=other, not CN=localhost"),
        (settings_of(AUTHORITY.issue(hosts=["localhost"])), "subject alternative names"),
        (settings_of(AUTHORITY.issue(expired=True)), "has expired"),
        (settings_of(AUTHORITY.issue(), keystore_key="broken"), "TLS of listener OUTSIDE"),
        (
            settings_of(AUTHORITY.issue(), keystore_key=AUTHORITY.issue().key_pem()),
            "(?i)key.values.mismatch",
        ),
        (TlsSettings(), "a key cannot be added or removed"),
    ],
    ids=["subject", "names", "expired", "broken", "mismatch", "removed"],
)
def test_the_old_certificate_stays_if_the_new_one_cannot_replace_it(
    wanted: TlsSettings, message: str
) -> None:
    """SEC-2: Kafka's rules, and no expired certificates."""
    old = AUTHORITY.issue()
    listener = listener_of(settings_of(old))
    with pytest.raises(InvalidTls, match=message):
        listener.replace(wanted)
    _, theirs = connect(listener, listener_of(settings_of(AUTHORITY.issue())))
    assert theirs.getpeercert(binary_form=True) == old.der


def test_another_subject_is_allowed_by_a_setting() -> None:
    """SEC-2."""
    listener = listener_of(settings_of(AUTHORITY.issue()))
    other = settings_of(
        AUTHORITY.issue("other", ["other"]), allow_dn_changes=True, allow_san_changes=True
    )
    assert listener.replace(other)


def test_nodes_keep_a_certificate_that_the_others_trust() -> None:
    """SEC-2: an authority that only the new certificate has would part the cluster."""
    listener = listener_of(settings_of(AUTHORITY.issue()), is_between_nodes=True)
    foreign = Authority("foreign")
    with pytest.raises(InvalidTls, match="do not trust each other"):
        listener.replace(settings_of(foreign.issue(), foreign))
