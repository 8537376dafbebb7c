"""``gateway models``: what can be asked for?"""
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import click

from gateway.cli.remote import why
from gateway.cli.source import config_option, json_option, snapshot_or_exit
from gateway.config.catalog import catalog
from gateway.prices import as_data
from gateway.routing.catalog import Listed, Target

ANSWER_S = 10.0


@click.command(epilog="""\b
Examples:
  gateway models
  gateway models --json | jq -r '.[].id'
  gateway models --url http://127.0.0.1:8788 --key "$GATEWAY_KEY"     ask a running gateway""")
@config_option
@json_option
@click.option("--url", metavar="URL", help="Ask the gateway that runs there instead of reading the configuration.")
@click.option("--key", metavar="KEY", envvar="GATEWAY_KEY", help="Client key for --url. [env: GATEWAY_KEY]")
def command(config: Path | None, as_json: bool, url: str | None, key: str | None) -> None:
    """List every name a request may use, with who serves it."""
    from gateway.cli import show

    rows = ask(url, key) if url else [facts(entry) for entry in catalog(snapshot_or_exit(config)).listed]
    if as_json:
        show.as_json(rows)
        return
    show.table(("model", "served by", "context", "max output", "$/M in", "$/M out"),
               [(row["id"], ", ".join(row.get("providers", ())), show.thousands(row.get("context_window")),
                 show.thousands(row.get("max_output_tokens")), *dollars(row.get("pricing"))) for row in rows],
               right=("context", "max output", "$/M in", "$/M out"))


def dollars(price: dict[str, Any] | None) -> tuple[str, str]:
    """What is not known stays empty."""
    return (f"{price['input']:g}", f"{price['output']:g}") if price else ("", "")


def facts(entry: Listed) -> dict[str, Any]:
    """The same names for the same facts as ``GET /v1/models``."""
    return {"id": entry.id, "form": entry.form, "owned_by": entry.owner,
            "providers": list(dict.fromkeys(target.provider.id for target in entry.targets)),
            "context_window": largest(entry.targets, "context"), "max_output_tokens": largest(entry.targets, "max_output"),
            "pricing": pricing(entry.targets)}


def pricing(targets: tuple[Target, ...]) -> dict[str, Any] | None:
    """At whoever is asked first, where all are the same model."""
    return as_data(targets[0].model.price) if targets and len({target.model.id for target in targets}) == 1 else None


def largest(targets: tuple[Target, ...], field: str) -> int | None:
    return max((n for target in targets if (n := getattr(target.model, field))), default=None)


def ask(url: str, key: str | None) -> list[dict[str, Any]]:
    """``GET /v1/models`` of a running gateway."""
    request = urllib.request.Request(url.rstrip("/").removesuffix("/v1") + "/v1/models")
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            data = json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        hint = "; a client key is needed (--key)" if error.code == 401 else ""
        raise click.ClickException(f"{url} answered {error.code}{hint}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"no gateway answers at {url}: {why(error)}") from error
    return list(data)
