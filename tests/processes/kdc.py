"""A Kerberos server of MIT's Debian packages, with its own realm and files."""

import os
import shutil
import socket
import subprocess
from pathlib import Path

from tests.processes.nodes import HOST, eventually, free_port

REALM = "EXAMPLE.COM"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")


def missing_program() -> str | None:
    """Return the name of a program that is not installed."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return next((name for name in PROGRAMS if shutil.which(name, path=path) is None), None)


class Kdc:
    """A key distribution centre on a free port."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config = directory / "krb5.conf"
        self.port = free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self.config.write_text(
            f"""[libdefaults]
    default_realm = {REALM}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
    default_ccache_name = FILE:{directory}/ccache
[realms]
    {REALM} = {{
        kdc = {HOST}:{self.port}
    }}
[domain_realm]
    {HOST} = {REALM}
    localhost = {REALM}
"""
        )
        (directory / "kdc.conf").write_text(
            f"""[kdcdefaults]
    kdc_listen = {HOST}:{self.port}
    kdc_tcp_listen = {HOST}:{self.port}
[realms]
    {REALM} = {{
        database_name = {directory}/principal
        key_stash_file = {directory}/stash
        acl_file = {directory}/acl
    }}
"""
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
            "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin",
        }

    def start(self) -> None:
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        self._server = subprocess.Popen(
            ["krb5kdc", "-n", "-r", REALM],
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        eventually(self._is_up)

    def stop(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.wait(20)

    def keytab(self, *principals: str) -> Path:
        """Add principals with random keys, and write these into a file."""
        path = self.directory / f"{principals[0].replace('/', '-')}.keytab"
        for principal in principals:
            self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
            self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(path), principal)
        return path

    def log_in(self, keytab: Path, principal: str) -> None:
        """Get a ticket for the clients of this process's environment."""
        self._run("kinit", "-k", "-t", str(keytab), principal)

    def _is_up(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0

    def _run(self, *command: str) -> None:
        subprocess.run(
            command, env={**os.environ, **self.environment}, check=True, capture_output=True
        )
