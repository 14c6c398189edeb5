"""Ports that servers keep over restarts."""

import socket

from headrace.runtime.ports import PORTS, free_port


def test_a_free_port_can_be_bound_and_is_not_one_of_the_taken() -> None:
    taken = set(PORTS) - {20_001, 20_002, 20_003, *range(25_000, 32_000)}
    port = free_port("127.0.0.1", taken)
    assert port in PORTS
    assert port not in taken
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
