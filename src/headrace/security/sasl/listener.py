"""Everything that a SASL listener needs to let its clients log in."""

from collections.abc import Callable

import msgspec

from headrace.security.sasl.authentication import (
    AnswerVersions,
    Authentication,
    Mechanisms,
    Session,
)
from headrace.security.sasl.reports import LoginReports


class ListenerLogins(msgspec.Struct, frozen=True):
    """The mechanisms and limits of one listener."""

    mechanisms: Mechanisms
    frame_bytes_max: int
    """Largest request before the login."""
    failure_delay_ms: int
    reports: LoginReports
    now_ms: Callable[[], int]

    def authentication(
        self, answer_versions: AnswerVersions, previous: Session | None = None
    ) -> Authentication:
        return Authentication(self.mechanisms, answer_versions, self.now_ms, previous)
