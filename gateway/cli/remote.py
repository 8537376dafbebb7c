"""What does a gateway that runs say? One request to its operator's side or a surface, and what is wrong told in words."""
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

import click

ANSWER_S: Final = 10.0
MESSAGE_CHARS: Final = 300


def asked(url: str, path: str, key: str | None, query: Mapping[str, Any] | None = None) -> Any:
    """JSON from ``GET path`` at a gateway's address."""
    address = url.rstrip("/").removesuffix("/v1") + path
    if query:
        address += "?" + urllib.parse.urlencode(query)
    try:
        request = urllib.request.Request(address)
        if key:
            request.add_header("Authorization", f"Bearer {key}")
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        hint = "; a key is needed (--key)" if error.code in (401, 403) and not key else ""
        raise click.ClickException(f"{url} answered {error.code}{_said(error)}{hint}") from error
    except (OSError, ValueError) as error:
        raise click.ClickException(f"no gateway answers at {url}: {why(error)}") from error


def why(error: Exception) -> str:
    """An error of the system in words, without its number."""
    inner = getattr(error, "reason", error)
    return str(getattr(inner, "strerror", None) or inner)


def _said(error: urllib.error.HTTPError) -> str:
    try:
        return ": " + str(json.loads(error.read(65_536))["error"]["message"])[:MESSAGE_CHARS]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
