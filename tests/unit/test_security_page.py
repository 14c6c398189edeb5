"""The properties on the page about security are valid."""

import re
import textwrap
from pathlib import Path

import pytest

from headrace.settings.broker_loading import load
from headrace.settings.properties import parse

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "security.md"
BLOCKS = re.findall(r"```properties\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_properties_of_the_page_are_valid(block: str, tmp_path: Path) -> None:
    """SEC-1 to SEC-9: each block is a part of a file that a node starts with."""
    secrets = tmp_path / "secrets"
    secrets.write_text("key.password=secret\n")
    text = textwrap.dedent(block).replace("/run/secrets/headrace", str(secrets))
    settings, warnings = load({"log.dirs": str(tmp_path), **parse(text)})
    assert [name for name in settings.ignored if not name.startswith("config.providers.")] == []
    assert [one for one in warnings if "has no effect without authorizer" not in one] == []


def test_the_page_has_an_example_for_each_mechanism() -> None:
    assert len(BLOCKS) >= 8
    for module in ("ScramLoginModule", "OAuthBearerLoginModule", "Krb5LoginModule", "users.file"):
        assert any(module in block for block in BLOCKS)
