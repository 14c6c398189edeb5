"""Subjects of certificates as Java prints them, and hostile bytes."""

import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier
from hypothesis import given
from hypothesis import strategies as st

from headrace.security.certificate_names import InvalidCertificate, read_certificate

Relatives = list[list[x509.NameAttribute[str]]]
KEY = ec.generate_private_key(ec.SECP256R1())
CN, ORG, OU = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME


def certificate_of(relatives: Relatives, year: int = 2031) -> bytes:
    name = x509.Name([x509.RelativeDistinguishedName(one) for one in relatives])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(dt.datetime(2030, 1, 1))
        .not_valid_after(dt.datetime(year, 1, 1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("a.b"), x509.DNSName("c")]), critical=False
        )
        .sign(KEY, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )


A = x509.NameAttribute
# The texts are those of X500Principal.getName() of Java 21.
SUBJECTS: list[tuple[Relatives, str]] = [
    ([[A(CN, "ada")], [A(ORG, "Acme, Inc.")]], r"O=Acme\, Inc.,CN=ada"),
    (
        [[A(NameOID.COUNTRY_NAME, "AT")], [A(OU, "a+b")], [A(CN, " lead#tail ")]],
        r"CN=\ lead\#tail\ ,OU=a\+b,C=AT",
    ),
    ([[A(CN, '#x=y;<>\\"')]], r"CN=\#x\=y\;\<\>\\\""),
    (
        [[A(NameOID.EMAIL_ADDRESS, "a@b")], [A(CN, "ü ö")]],
        "CN=ü ö,1.2.840.113549.1.9.1=#1603614062",
    ),
    (
        [[A(NameOID.DOMAIN_COMPONENT, "com")], [A(NameOID.USER_ID, "u1")]],
        "UID=u1,DC=com",
    ),
    (
        [[A(CN, "a"), A(NameOID.USER_ID, "b"), A(NameOID.SURNAME, "c")]],
        "CN=a+2.5.4.4=#0c0163+UID=b",
    ),
    ([[A(ObjectIdentifier("1.2.3.4"), "x")]], "1.2.3.4=#0c0178"),
    ([[A(CN, "  ")]], "CN=\\ \\ "),
    ([[A(CN, "\r a\r ")]], "CN=\\\r\\ a\\\r\\ "),
    ([[A(CN, "nul\0x\ttab\nnl")]], "CN=nul\\00x\ttab\nnl"),
    ([[A(CN, "t61", _ASN1Type.T61String)]], "CN=t61"),
    ([[A(CN, "b", _ASN1Type.BMPString)]], "CN=\\00b"),
    ([[A(CN, "u", _ASN1Type.UniversalString)]], "CN=#1c0400000075"),
    ([], ""),
]


@pytest.mark.parametrize(("relatives", "text"), SUBJECTS)
def test_a_subject_is_printed_as_by_java(relatives: Relatives, text: str) -> None:
    """SEC-3."""
    assert read_certificate(certificate_of(relatives)).subject == text


@pytest.mark.parametrize("year", [2031, 2055])
def test_the_end_of_the_validity_is_read_in_both_forms(year: int) -> None:
    expires_s = read_certificate(certificate_of([], year)).expires_s
    assert expires_s == dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp()


def test_alternative_names_are_compared_as_a_set() -> None:
    assert read_certificate(certificate_of([])).alternative_names == {b"\x82a.b", b"\x82c"}


WHOLE = certificate_of([[A(CN, "ada")]])


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8))
def test_damaged_certificates_are_an_error_and_nothing_else(start: int, bytes_: bytes) -> None:
    damaged = WHOLE[:start] + bytes_ + WHOLE[start + len(bytes_) :]
    for data in (damaged, WHOLE[:start]):
        try:
            read_certificate(data)
        except InvalidCertificate:
            continue
