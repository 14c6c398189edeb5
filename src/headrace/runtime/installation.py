"""The pip command that adds an extra to this installation of Headrace."""

from urllib.parse import unquote, urlsplit


def pip_command(extra: str) -> str:
    """Return a command that works without a package index that has Headrace.

    pip records the place of a package that did not come from an index (PEP 610): a wheel, a
    checkout or a repository. Only a package from an index is found by its name.
    """
    return f"pip install {_requirement(extra, _origin())}"


def _requirement(extra: str, origin: dict[str, object]) -> str:
    url = str(origin.get("url", ""))
    match origin:
        case {"dir_info": {"editable": True}}:
            return f"-e '{unquote(urlsplit(url).path)}[{extra}]'"
        case {"vcs_info": {"vcs": vcs, "commit_id": commit}}:
            return f"'headrace[{extra}] @ {vcs}+{url}@{commit}'"
        case {"url": _}:
            return f"'headrace[{extra}] @ {url}'"
        case _:
            return f"'headrace[{extra}]'"


def _origin() -> dict[str, object]:
    """Read the record of the place; empty for a package from an index.

    The imports take more time than most commands need in order to start.
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution("headrace").read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    return dict(json.loads(text)) if text else {}
