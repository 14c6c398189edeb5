"""The broker's configs are put together once, and again when one of them has changed."""

from headrace.broker.configs.topic_configs import DescribedBroker, Entries
from headrace.protocol.schemas.describe_configs import DescribeConfigsResourceResult
from headrace.settings.broker import BrokerSettings
from headrace.settings.broker_layers import BrokerLayers

PLAIN, WITH_SYNONYMS = (False, False), (True, False)


class Maker:
    """Makes entries and counts the calls."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> Entries:
        self.made += 1
        return [DescribeConfigsResourceResult(value=str(self.made))]


def layers(**dynamic: str) -> BrokerLayers:
    """A new object for each request, as the handler makes it."""
    return BrokerLayers(BrokerSettings(), {}, dynamic)


def test_an_equal_request_returns_the_cached_entries() -> None:
    described, make = DescribedBroker(), Maker()
    first = described.entries(layers(), PLAIN, make)
    assert described.entries(layers(), PLAIN, make) is first
    assert make.made == 1


def test_each_kind_of_request_has_its_own_entries() -> None:
    described, make = DescribedBroker(), Maker()
    described.entries(layers(), PLAIN, make)
    assert described.entries(layers(), WITH_SYNONYMS, make)[0].value == "2"
    assert described.entries(layers(), PLAIN, make)[0].value == "1"


def test_a_change_of_any_layer_is_seen_at_once() -> None:
    described, make = DescribedBroker(), Maker()
    described.entries(layers(), PLAIN, make)
    assert described.entries(layers(threads="2"), PLAIN, make)[0].value == "2"
    changed = BrokerLayers(BrokerSettings(num_partitions=7))
    assert described.entries(changed, PLAIN, make)[0].value == "3"
