"""The text of network addresses."""

from headrace.runtime.addresses import address_text


def test_hosts_of_ipv6_are_in_brackets() -> None:
    assert address_text("localhost", 9092) == "localhost:9092"
    assert address_text("::1", 9092) == "[::1]:9092"
