"""Errors between a client and a schema registry."""

from headrace.errors import HeadraceError


class RegistryFailure(HeadraceError):
    """A request to a registry failed."""


class InvalidRegistryAddress(RegistryFailure):
    """The address of a registry is invalid."""


class RegistryUnavailable(RegistryFailure):
    """A registry does not answer, or answers with invalid content; a retry may succeed."""


class RegistryRefusal(RegistryFailure):
    """A registry rejected the request."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        """Confluent's error code, such as 40401 for an unknown subject."""

    @property
    def is_not_found(self) -> bool:
        return self.status == 404
