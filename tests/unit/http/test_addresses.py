"""Listen addresses."""

import pytest

from headrace.http.addresses import InvalidAddress, ListenAddress


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8090", ListenAddress("127.0.0.1", 8090)),
        ("localhost:0", ListenAddress("localhost", 0)),
        ("[::1]:8090", ListenAddress("::1", 8090)),
    ],
)
def test_an_address_is_read_and_written_alike(text: str, address: ListenAddress) -> None:
    assert (ListenAddress.parse(text), str(address)) == (address, text)


@pytest.mark.parametrize("text", ["8090", ":8090", "host:", "host:x", "host:70000", "::1:8090"])
def test_an_invalid_address_is_rejected(text: str) -> None:
    with pytest.raises(InvalidAddress):
        ListenAddress.parse(text)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("example.org", False),
    ],
)
def test_loopback_is_this_machine_only(host: str, is_loopback: bool) -> None:
    assert ListenAddress(host, 1).is_loopback is is_loopback
