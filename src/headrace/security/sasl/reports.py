"""The results of logins: counters under Kafka's names, and rows in the log.

A flood of failed logins must not fill the log. After a few rows of one second the others are only
counted, and the next row has their number.
"""

import logging
from collections.abc import Callable

from headrace.runtime.log_limits import LogLimit
from headrace.security.principals import Principal

_log = logging.getLogger(__name__)

Audit = Callable[[str, str, str, Principal | None, str | None], None]
"""Receives listener, host, mechanism, the principal of a login, and the reason of a failure."""


class LoginMetrics:
    """The counters of one listener."""

    __slots__ = (
        "connections_expired",
        "failures",
        "renewal_failures",
        "renewals",
        "successes",
    )

    def __init__(self) -> None:
        self.successes = 0
        self.failures = 0
        self.renewals = 0
        self.renewal_failures = 0
        self.connections_expired = 0


class LoginReports:
    """Counts and logs the results of one listener."""

    def __init__(
        self, listener: str, monotonic_ms: Callable[[], int], audit: Audit | None = None
    ) -> None:
        self.metrics = LoginMetrics()
        self._listener = listener
        self._audit = audit
        self._limit = LogLimit(period_s=1.0, clock=lambda: monotonic_ms() / 1000)

    def succeeded(
        self, connection: str, host: str, mechanism: str, principal: Principal, *, is_renewal: bool
    ) -> None:
        if is_renewal:
            self.metrics.renewals += 1
        else:
            self.metrics.successes += 1
        _log.debug(
            "client logged in",
            extra={
                "listener": self._listener,
                "connection": connection,
                "mechanism": mechanism,
                "principal": str(principal),
            },
        )
        if self._audit is not None:
            self._audit(self._listener, host, mechanism, principal, None)

    def failed(
        self, connection: str, host: str, mechanism: str, reason: str, *, is_renewal: bool
    ) -> None:
        if is_renewal:
            self.metrics.renewal_failures += 1
        else:
            self.metrics.failures += 1
        if self._audit is not None:
            self._audit(self._listener, host, mechanism, None, reason)
        if not self._limit.allows():
            return
        _log.info(
            "login failed",
            extra={
                "listener": self._listener,
                "connection": connection,
                "mechanism": mechanism or "none",
                "error": reason,
                "suppressed": self._limit.suppressed(),
            },
        )

    def out_of_place(self, connection: str, reason: str) -> None:
        """Log a request that does not belong to a login; it closes the connection."""
        if not self._limit.allows():
            return
        _log.warning(
            "invalid request before the login, connection closed",
            extra={
                "listener": self._listener,
                "connection": connection,
                "error": reason,
                "suppressed": self._limit.suppressed(),
            },
        )

    def expired(self, connection: str) -> None:
        self.metrics.connections_expired += 1
        _log.debug(
            "session expired, connection closed",
            extra={"listener": self._listener, "connection": connection},
        )
