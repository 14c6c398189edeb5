"""The time that a request gives the controller to act."""

from headrace.errors import RequestTimedOut


def check_deadline(timeout_ms: int) -> None:
    """Kafka's controller starts nothing whose time is up already, so neither do we.

    A decision that has started is not given up: its records may be in the log already, and the
    client is better served by a late answer than by a wrong one.
    """
    if timeout_ms <= 0:
        raise RequestTimedOut(f"a timeout of {timeout_ms} ms leaves no time to act")
