"""Time limits of streams."""

from headrace.rest.push.delivering import Lifetime


async def test_a_stream_waits_until_the_next_heartbeat() -> None:
    lifetime = Lifetime(15_000, 60_000)
    assert (lifetime.is_over, lifetime.wait_s()) == (False, 15.0)


async def test_a_stream_does_not_wait_beyond_its_lifetime() -> None:
    assert Lifetime(15_000, 1_000).wait_s() <= 1.0
