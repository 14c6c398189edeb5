"""The security of the nodes that `headrace up --secure` starts.

The first start makes an authority, certificates, the password of the user `admin`, and a key for
delegation tokens, below `security` in the data directory. Later starts use the same files. Clients
use TLS and log in by SCRAM. Nodes show each other certificates.

This module decides about files and properties; it starts nothing.
"""

import datetime as dt
import os
import secrets
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import msgspec

from headrace.cli.certificate_folder import CertificateFolder, Made
from headrace.cli.defaults import SECURITY_FOLDER
from headrace.cli.local_cluster import BROKERS, CLIENTS, CONTROLLERS, LocalCluster
from headrace.cli.services import ServiceFiles
from headrace.runtime import files
from headrace.settings.broker import STANDARD_AUTHORIZER
from headrace.settings.jaas import SCRAM_LOGIN_MODULE, jaas_text
from headrace.settings.properties import parse, render

if TYPE_CHECKING:
    from headrace.protocol.schemas.records.metadata import UserScramCredentialRecord

ADMIN = "admin"
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256")

_MUTUAL = (BROKERS, CONTROLLERS)
"""Listeners at which a node must show a certificate."""
_PROTOCOLS = (f"{CLIENTS}:SASL_SSL", *(f"{one}:SSL" for one in _MUTUAL))
_DAYS = 825
_SECRET_BYTES = 24
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_SUPER_USERS = "super.users"


class LocalSecurity(msgspec.Struct, frozen=True, kw_only=True):
    """The secrets of a data directory, and the paths of its files."""

    folder: str
    password: str
    token_key: str
    first_node: str
    peers: tuple[str, ...] = ()
    """The nodes that connect to each other, which are super users."""
    certificates: tuple[Made, ...] = ()

    def __repr__(self) -> str:
        return f"LocalSecurity({self.folder})"

    @property
    def authority_path(self) -> str:
        return os.path.join(self.folder, "ca.crt")

    @property
    def client_path(self) -> str:
        """The settings for librdkafka, kcat and the commands of Headrace."""
        return os.path.join(self.folder, "client.properties")

    @property
    def java_path(self) -> str:
        """The settings for Java's clients and tools."""
        return os.path.join(self.folder, "java.properties")

    @property
    def rest_path(self) -> str:
        """The settings for the REST proxy."""
        return os.path.join(self.folder, "rest.properties")

    @property
    def client_settings(self) -> dict[str, str]:
        """The settings of clients that log in as the admin."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISMS[0],
            "sasl.username": ADMIN,
            "sasl.password": self.password,
            "ssl.ca.location": self.authority_path,
        }

    @property
    def java_settings(self) -> dict[str, str]:
        login = jaas_text(SCRAM_LOGIN_MODULE, username=ADMIN, password=self.password)
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISMS[0],
            "sasl.jaas.config": login,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority_path,
        }

    def service_files(self) -> ServiceFiles:
        """Return the files for a registry and a REST proxy, with the admin as their user."""
        from headrace.http.users import PasswordHash, read_users

        path = Path(self.folder, "http.users")
        is_current = path.exists() and read_users(path).accepts(ADMIN, self.password)
        if not is_current:
            line = f"{ADMIN}:{PasswordHash.of(self.password)}\n"
            files.replace_secret(str(path), line.encode())
        return ServiceFiles(
            registry=self.client_path,
            rest=self.rest_path,
            certificate=os.path.join(self.folder, f"{self.first_node}.pem"),
            authority=self.authority_path,
            users=str(path),
        )

    def node_properties(self, node: str, shared: Mapping[str, str]) -> dict[str, str]:
        """Return the properties of a node, besides its listeners."""
        path = os.path.join(self.folder, node)
        return {
            "listener.security.protocol.map": ",".join(_PROTOCOLS),
            **{f"listener.name.{one.lower()}.ssl.client.auth": "required" for one in _MUTUAL},
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": f"{path}.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority_path,
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            **{
                f"listener.name.{CLIENTS.lower()}.{one.lower()}.sasl.jaas.config": jaas_text(
                    SCRAM_LOGIN_MODULE
                )
                for one in MECHANISMS
            },
            "delegation.token.secret.key": self.token_key,
            "authorizer.class.name": STANDARD_AUTHORIZER,
            **shared,
            _SUPER_USERS: self._super_users(shared.get(_SUPER_USERS, "")),
        }

    def admin_record(self) -> "UserScramCredentialRecord":
        """Return the record of the admin's credential, for the formatting of the first nodes."""
        from headrace.metadata.log.first_users import user_record
        from headrace.security.sasl.scram import Mechanism
        from headrace.security.scram_credentials import credential_of, new_salt

        mechanism = Mechanism(MECHANISMS[0])
        return user_record(ADMIN, mechanism, credential_of(mechanism, self.password, new_salt()))

    def write_settings(self, bootstrap: str) -> None:
        """Write the files of settings for clients; the address may have changed."""
        servers = {"bootstrap.servers": bootstrap}
        comment = "Written by `headrace up --secure` at each start, with the password of the admin."
        rest = {
            "schema.registry.basic.auth.user.info": f"{ADMIN}:{self.password}",
            "schema.registry.ssl.truststore.location": self.authority_path,
            **{f"client.{name}": value for name, value in self.client_settings.items()},
        }
        for path, settings in (
            (self.client_path, self.client_settings),
            (self.java_path, self.java_settings),
            (self.rest_path, rest),
        ):
            files.replace_secret(path, render({**servers, **settings}, comment).encode())

    def announced_lines(self, bootstrap: str) -> Iterator[str]:
        """Return lines about the files and the settings of clients.

        The password is printed on a terminal only: the output of a service is a log.
        """
        folder, client, java = (
            quote(os.path.relpath(path)) for path in (self.folder, self.client_path, self.java_path)
        )
        yield f"  security  {folder}, with ca.crt and the settings of clients"
        for made in self.certificates:
            if made.reason is not None:
                yield f"            {os.path.relpath(made.path)} made ({made.reason})"
        yield f"  headrace  export HEADRACE_COMMAND_CONFIG={client}"
        # Older ones repeat a part of the SCRAM exchange, which Kafka 4 rejects as well.
        yield f"  kcat      kcat -F {client} -L  # with librdkafka 2.6.1 or newer"
        yield (
            f"  java      kafka-topics --bootstrap-server {bootstrap} --command-config {java}"
            " --list"
        )
        if not sys.stdout.isatty():
            return
        servers = {"bootstrap.servers": bootstrap}
        yield "  settings of librdkafka:"
        yield from _block({**servers, **self.client_settings})
        yield "  settings of Java's clients:"
        yield from _block({**servers, **self.java_settings})

    def _super_users(self, given: str) -> str:
        peers = (f"User:CN={node}" for node in self.peers)
        return ";".join([f"User:{ADMIN}", *peers, *([given] if given else [])])


def prepare(
    data: str,
    nodes: Sequence[str],
    hosts: Sequence[str],
    now: dt.datetime,
    *,
    are_peers: bool = True,
) -> LocalSecurity:
    """Return the security of a data directory; make the files that are missing.

    `hosts` are the names and addresses by which clients find the nodes.
    """
    folder = os.path.join(os.path.abspath(data), SECURITY_FOLDER)
    place = CertificateFolder(folder, now)
    made = [place.authority(f"Headrace CA of {socket.gethostname()}"[:64])]
    names = tuple(dict.fromkeys((*_LOCAL_HOSTS, *hosts)))
    made += [place.certificate(node, names, _DAYS) for node in nodes]
    return LocalSecurity(
        folder=folder,
        password=_kept_password(folder) or secrets.token_urlsafe(_SECRET_BYTES),
        token_key=_kept_token_key(folder),
        first_node=nodes[0],
        peers=tuple(nodes) if are_peers else (),
        certificates=tuple(made),
    )


def prepare_cluster(cluster: LocalCluster, now: dt.datetime) -> LocalSecurity:
    """Return the security of a cluster on one machine."""
    hosts = [*hosts_of(cluster.host, ""), *(node.host for node in cluster.nodes if node.host)]
    security = prepare(cluster.data, [node.name for node in cluster.nodes], hosts, now)
    security.write_settings(cluster.local_addresses)
    return security


def hosts_of(listen_host: str, advertised: str) -> list[str]:
    """Return the hosts of certificates: of the listener and of `advertised.listeners`."""
    is_everywhere = listen_host in ("", "0.0.0.0", "::")
    hosts = [socket.gethostname(), socket.getfqdn()] if is_everywhere else [listen_host]
    for listener in filter(None, advertised.split(",")):
        host = listener.partition("://")[2].rpartition(":")[0]
        hosts.append(host.removeprefix("[").removesuffix("]"))
    return [host for host in dict.fromkeys(hosts) if host]


def _kept_password(folder: str) -> str | None:
    """Return the admin's password; a user who changes it writes the new one into this file."""
    try:
        stored = parse(files.read(os.path.join(folder, "client.properties")).decode())
    except FileNotFoundError:
        return None
    return stored.get("sasl.password")


def _kept_token_key(folder: str) -> str:
    path = os.path.join(folder, "token.key")
    if not os.path.exists(path):
        files.replace_secret(path, secrets.token_urlsafe(_SECRET_BYTES).encode())
    return files.read(path).decode().strip()


def _block(settings: Mapping[str, str]) -> Iterator[str]:
    for name, value in settings.items():
        yield f"    {name}={value}"
