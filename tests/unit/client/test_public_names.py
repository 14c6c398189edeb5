"""`import headrace` is light, and its names are there when they are used."""

import subprocess
import sys

import pytest

import headrace


@pytest.mark.parametrize("name", sorted(headrace._HOMES))
def test_every_public_name_exists(name: str) -> None:
    assert getattr(headrace, name) is not None
    assert name in dir(headrace)


def test_an_unknown_name_raises_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Prodcer"):
        getattr(headrace, "Prod" + "cer")


def test_importing_the_package_imports_no_client() -> None:
    program = "import sys, headrace; sys.exit('confluent_kafka' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
