"""The failure of a request to another node."""

from headrace.errors import HeadraceError


class PeerUnreachable(HeadraceError):
    """A node did not answer: it cannot be reached, the connection was lost, or the time is up."""

    def __init__(self, text: str, *, is_refused: bool = False) -> None:
        super().__init__(text)
        self.is_refused = is_refused
        """True if the machine rejects connections to the port: no process listens there."""
