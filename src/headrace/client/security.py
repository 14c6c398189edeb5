"""How a connection is protected: plain, or TLS by librdkafka's setting names."""

import socket
from collections.abc import Mapping

import msgspec

from headrace.errors import HeadraceError


class Security(msgspec.Struct, frozen=True):
    """The part of the client settings that a connection needs."""

    is_tls: bool = False
    ca_location: str | None = None
    certificate_location: str | None = None
    key_location: str | None = None
    key_password: str | None = None
    verify_certificate: bool = True
    verify_host: bool = True

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "Security":
        """What a properties file says; a protocol that is not spoken here is refused by name."""
        protocol = properties.get("security.protocol", "PLAINTEXT").upper()
        if protocol not in ("PLAINTEXT", "SSL"):
            raise HeadraceError(
                f"security.protocol {protocol} works with produce and consume only; this command"
                " speaks PLAINTEXT and SSL"
            )
        verify = properties.get("enable.ssl.certificate.verification", "true")
        algorithm = properties.get("ssl.endpoint.identification.algorithm", "https")
        return cls(
            is_tls=protocol == "SSL",
            ca_location=properties.get("ssl.ca.location"),
            certificate_location=properties.get("ssl.certificate.location"),
            key_location=properties.get("ssl.key.location"),
            key_password=properties.get("ssl.key.password"),
            verify_certificate=verify.lower() == "true",
            verify_host=algorithm.lower() not in ("", "none"),
        )

    def wrap(self, opened: socket.socket, host: str) -> socket.socket:
        """The socket to speak through."""
        if not self.is_tls:
            return opened
        import ssl

        context = ssl.create_default_context(cafile=self.ca_location)
        context.check_hostname = self.verify_host and self.verify_certificate
        if not self.verify_certificate:
            context.verify_mode = ssl.CERT_NONE
        if self.certificate_location is not None:
            context.load_cert_chain(self.certificate_location, self.key_location, self.key_password)
        return context.wrap_socket(opened, server_hostname=host)
