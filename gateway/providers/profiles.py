"""What is known of a provider before anybody configures it? The catalogue: one TOML file each, loaded and checked as a whole."""
import functools
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

import msgspec

from gateway.providers.quirks import QUIRKS
from gateway.providers.registry import Kind, Price

WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse", "cohere", "ollama")


class CatalogError(ValueError):
    """A catalogue file is broken: ``groq.toml:12: what is wrong``."""


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model of a catalogue entry. Unknown facts stay None."""
    id: str
    kind: Kind = "chat"
    context: int | None = None
    max_output: int | None = None
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    completions: bool = False
    dimensions: int | None = None
    price: Price | None = None
    aliases: tuple[str, ...] = ()


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A catalogue entry: ``preset = "…"`` starts from it, zero-config switches it on by its key variable."""
    name: str
    order: int
    docs: str
    base_url: str = ""
    wire: str = "openai-chat"
    auth: str = ""                           # empty: the default of the wire
    env: tuple[str, ...] = ()                # the usual key variables, the first that is set counts
    quirks: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    models: tuple[ModelFacts, ...] = ()
    in_process: bool = False


@functools.cache
def profiles() -> Mapping[str, Profile]:
    """All entries by id, in catalogue order. Raises CatalogError."""
    found: dict[str, Profile] = {}
    for file in resources.files("gateway.providers").joinpath("catalog").iterdir():
        if file.name.endswith(".toml"):
            found[file.name.removesuffix(".toml")] = parse(file.name, file.read_text("utf-8"))
    return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))


def parse(name: str, text: str) -> Profile:
    """One file. Raises CatalogError naming the file and the line."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        line = re.search(r"at line (\d+)", str(e))
        raise CatalogError(f"{name}:{line[1] if line else text.count(chr(10)) + 1}: {e}") from None
    try:
        profile = msgspec.convert(raw, Profile)
    except msgspec.ValidationError as e:
        raise CatalogError(f"{name}:{_line(text, str(e))}: {e}") from None
    for problem, word in _wrong(profile):
        raise CatalogError(f"{name}:{_line_with(text, word)}: {problem}")
    return profile


def _wrong(profile: Profile) -> list[tuple[str, str]]:
    """(what is wrong, a text that stands on its line)"""
    found = [(f"unknown quirk {quirk!r}", quirk) for quirk in profile.quirks if quirk not in QUIRKS]
    if profile.wire not in WIRES:
        found.append((f"unknown wire {profile.wire!r}", "wire"))
    if not profile.in_process and not re.match(r"https?://[^/\s]+(/\S*[^/\s])?$", profile.base_url):
        found.append((f"base_url {profile.base_url!r} must be http(s) without a trailing slash", "base_url"))
    seen: set[str] = set()
    for model in profile.models:
        if model.id in seen:
            found.append((f"model {model.id!r} stands there twice", f'"{model.id}"'))
        seen.add(model.id)
    return found


def _line(text: str, error: str) -> int:
    """The line that msgspec's ``… - at `$.models[2].context` `` points at."""
    place = re.search(r"at `\$\.(\w+)(?:\[(\d+)\])?", error)
    if place is None:
        field = re.search(r"unknown field `(\w+)`", error)
        return _line_with(text, field[1]) if field else 1
    if place[2] is None:
        return _line_with(text, place[1])
    entries = [number for number, line in enumerate(text.split("\n"), 1) if re.search(r"\{.*\bid\s*=", line)]
    return entries[int(place[2])] if int(place[2]) < len(entries) else _line_with(text, place[1])


def _line_with(text: str, word: str) -> int:
    for number, line in enumerate(text.split("\n"), 1):
        if word in line:
            return number
    return 1


def facts(profile: Profile) -> dict[str, dict[str, Any]]:
    """What the entry says of each model, by id: only what it knows, for merging with what a user wrote."""
    return {model.id: {name: value for name in ModelFacts.__struct_fields__ if (value := getattr(model, name)) is not None}
            for model in profile.models}
