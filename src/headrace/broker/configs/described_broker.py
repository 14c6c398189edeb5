"""The broker's own configs as DescribeConfigs tells them, kept until one of them changes.

There are hundreds, each with a text and the layers that set it. Tools ask for all of them again
and again, and putting them together would keep the loop from other clients for milliseconds.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.protocol.schemas.describe_configs import DescribeConfigsResourceResult
    from headrace.settings.broker_layers import BrokerLayers

Entries = list["DescribeConfigsResourceResult"]


class DescribedBroker:
    """The entries of an answer by what was asked for: with synonyms, with documentation."""

    def __init__(self) -> None:
        self._layers: BrokerLayers | None = None
        self._entries: dict[tuple[bool, bool], Entries] = {}

    def entries(
        self, layers: "BrokerLayers", asked: tuple[bool, bool], make: Callable[[], Entries]
    ) -> Entries:
        """As they were made last time if all layers are what they were; nobody may change them."""
        if layers != self._layers:
            self._layers = layers
            self._entries = {}
        kept = self._entries.get(asked)
        if kept is None:
            kept = self._entries[asked] = make()
        return kept
