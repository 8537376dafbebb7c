"""How do lines get into a file that belongs to another program? Merged into what is there; what was there before is kept beside it."""
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import click

from gateway.cli.clients.place import Settings


def write(settings: Settings, home: Path) -> tuple[Path, bool]:
    """Where it was written, and whether anything changed. Raises ClickException where the file cannot be understood: nothing is
    changed then."""
    path = home / settings.path
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    after = merged(before, settings, path)
    if after == before:
        return path, False
    path.parent.mkdir(parents=True, exist_ok=True)
    if before:
        _put(path.with_name(path.name + ".before-gateway"), before)
    _put(path, after)
    return path, True


def merged(before: str, settings: Settings, path: Path) -> str:
    if settings.data is None:
        if settings.mark in before:
            raise click.ClickException(f"{path} has {settings.mark.rstrip('=:')} already; change it by hand, it should read:\n"
                                       f"{settings.text.strip()}")
        return before + ("\n" if before and not before.endswith("\n") else "") + settings.text.lstrip("\n" if not before else "")
    try:
        data = json.loads(before) if before.strip() else {}
    except ValueError as error:
        raise click.ClickException(f"{path} is not plain JSON ({error}); add this by hand:\n"
                                   + json.dumps(settings.data, indent=2)) from None
    if not isinstance(data, dict):
        raise click.ClickException(f"{path} holds no JSON object; nothing was changed")
    made = overlaid(data, settings.data)
    return before if made == data else json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def overlaid(data: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """``more`` wins, at any depth; what it does not name stays."""
    out = dict(data)
    for name, value in more.items():
        old = out.get(name)
        out[name] = overlaid(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return out


def _put(path: Path, text: str) -> None:
    """In one step, readable by nobody else: it may hold a key."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(name, path)
