"""Allowed and forbidden targets of webhooks."""

import pytest

from headrace.errors import InvalidConfig
from headrace.http.errors import HttpError
from headrace.rest.webhooks.targets import AllowedTargets, Target, TargetForbidden, parsed


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://a.example", Target(True, "a.example", 443, "/")),
        ("http://a.example:8080/x?y=1", Target(False, "a.example", 8080, "/x?y=1")),
        ("http://[::1]:80/", Target(False, "::1", 80, "/")),
    ],
)
def test_a_url_is_parsed(url: str, target: Target) -> None:
    assert parsed(url) == target


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://a.example", "a.example", "http://", "http://u:p@a.example", "http://a/#f"),
        *("http://a/\r\nX: y", "http://a b/", "http://a:99999/", "http://a/" + "x" * 3_000),
    ],
)
def test_other_urls_are_rejected(url: str) -> None:
    with pytest.raises(HttpError):
        parsed(url)


@pytest.mark.parametrize(
    ("listed", "url"),
    [
        ("hooks.example.com", "https://hooks.example.com/x"),
        ("Hooks.Example.com", "https://hooks.EXAMPLE.com/x"),
        ("*.example.com", "https://a.b.example.com/x"),
        ("a.example:8080", "http://a.example:8080/"),
        ("127.0.0.1", "http://127.0.0.1:9/"),
        ("10.0.0.0/8, b.example", "http://10.1.2.3/"),
        ("[::1]:80", "http://[::1]/"),
    ],
)
def test_listed_targets_are_allowed(listed: str, url: str) -> None:
    AllowedTargets(listed).check(parsed(url))


@pytest.mark.parametrize(
    ("listed", "url"),
    [
        ("", "https://hooks.example.com/"),
        ("hooks.example.com", "https://evil-hooks.example.com/"),
        ("*.example.com", "https://example.com.evil.net/"),
        ("*.example.com", "https://badexample.com/"),
        ("a.example:8080", "http://a.example/"),
        ("127.0.0.1:9", "http://127.0.0.1:10/"),
        ("10.0.0.0/8", "http://11.0.0.1/"),
    ],
)
def test_other_targets_are_rejected(listed: str, url: str) -> None:
    with pytest.raises(TargetForbidden):
        AllowedTargets(listed).check(parsed(url))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.5", "192.168.1.1", "169.254.169.254", "::1", "fe80::1%eth0"),
        *("::ffff:127.0.0.1", "0.0.0.0", "fd00::1"),
    ],
)
def test_a_name_never_leads_into_private_networks(address: str) -> None:
    with pytest.raises(TargetForbidden):
        AllowedTargets("a.example").choose(parsed("http://a.example/"), [address])


def test_a_name_may_lead_to_a_private_address_that_is_listed_itself() -> None:
    allowed = AllowedTargets("a.example, 10.0.0.0/8")
    assert allowed.choose(parsed("http://a.example/"), ["192.168.0.1", "10.0.0.5"]) == "10.0.0.5"


def test_public_addresses_of_a_name_are_fine() -> None:
    allowed = AllowedTargets("a.example")
    assert allowed.choose(parsed("http://a.example/"), ["93.184.216.34"]) == "93.184.216.34"


@pytest.mark.parametrize("text", ["a b", "http://a.example", "a.example:http", "*", "a.*.example"])
def test_an_invalid_list_is_rejected_at_the_start(text: str) -> None:
    with pytest.raises(InvalidConfig):
        AllowedTargets(text)
