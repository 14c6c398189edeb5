"""What can go wrong between a client and a schema registry."""

from headrace.errors import HeadraceError


class RegistryFailure(HeadraceError):
    """A registry did not do what it was asked for."""


class InvalidRegistryAddress(RegistryFailure):
    """A text that is no address of a registry."""


class RegistryUnavailable(RegistryFailure):
    """A registry does not answer, or not with anything that makes sense; later it may."""


class RegistryRefusal(RegistryFailure):
    """A registry has answered, and says no."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        """Confluent's number, as 40401 for a subject that is not there."""

    @property
    def is_not_found(self) -> bool:
        return self.status == 404
