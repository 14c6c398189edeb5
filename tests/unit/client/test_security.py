"""What a properties file says about security."""

import pytest

from headrace.client.security import Security
from headrace.errors import HeadraceError


def test_plain_is_the_default() -> None:
    assert not Security.of({}).is_tls


def test_tls_settings_have_librdkafkas_names() -> None:
    security = Security.of(
        {
            "security.protocol": "ssl",
            "ssl.ca.location": "ca.pem",
            "enable.ssl.certificate.verification": "false",
            "ssl.endpoint.identification.algorithm": "none",
        }
    )
    assert security == Security(
        is_tls=True, ca_location="ca.pem", verify_certificate=False, verify_host=False
    )


def test_what_is_not_spoken_is_refused_by_name() -> None:
    with pytest.raises(HeadraceError, match="SASL_SSL works with produce and consume only"):
        Security.of({"security.protocol": "SASL_SSL"})
