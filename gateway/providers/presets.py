"""What is known of a provider before anybody configures it? The catalogue: one TOML file each, read when somebody asks for it.

A configuration names a few of more than two hundred entries, so a start reads those files and no others. Looking for an alias
or for the key variables of an environment scans the heads of all files, which is a few lines of text each.
"""
import functools
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from gateway.providers.quirks import QUIRKS
from gateway.providers.registry import Kind, Price

WIRES: Final = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock-converse", "cohere", "ollama")
AUTHS: Final = ("", "bearer", "x-api-key", "x-goog-api-key", "api-key", "query", "none", "oauth", "sigv4", "gcp")
HEAD_BYTES: Final = 2_048                    # an entry without its models is shorter
LAST: Final = 500                            # order of the entries that say none
_URL = re.compile(r"https?://[^/\s]+(/\S*[^/\s])?$")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_HEAD = re.compile(r"^(env|aliases|order|variant_of) = (.+)$", re.M)
_MODELS: Final = "\nmodels = ["
_MODEL = re.compile(r'^  \{ id = "([^"\\]+)"', re.M)
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,47}")


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


class Preset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A catalogue entry: ``preset = "…"`` starts from it, zero-config switches it on by its key variable."""
    id: str = ""                             # the name of its file
    name: str
    docs: str
    order: int = LAST                        # place in zero-config
    aliases: tuple[str, ...] = ()            # other names of the entry
    variant_of: str = ""                     # the same provider by another door: zero-config takes that one
    base_url: str = ""                       # may hold {placeholders}, which ``vars`` fill
    vars: dict[str, str] = {}                # placeholder -> value where nobody sets it, ${env:NAME} too; "" = must be set
    query: dict[str, str] = {}               # what every address ends in; may hold placeholders
    wire: str = "openai-chat"
    auth: str = ""                           # empty: the default of the wire
    env: tuple[str, ...] = ()                # the usual key variables, the first that is set counts
    quirks: tuple[str, ...] = ()
    headers: dict[str, str] = {}             # may hold placeholders
    models_url: str = ""                     # its list of models; empty = base_url + /models, "none" = there is no such list
    limit_headers: str = ""                  # how the headers begin in which it states what is left
    price_source: str = ""                   # who states the prices of the models below, and when that was looked up
    price_as_of: str = ""
    models: tuple[ModelFacts, ...] = ()
    in_process: bool = False


class Head(msgspec.Struct, frozen=True):
    """What finding an entry takes."""
    order: int = LAST
    env: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    variant_of: str = ""


class Catalogue(Mapping[str, Preset]):
    """Entries by id, in catalogue order. Raises CatalogError when a broken one is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Preset] = {}

    def __getitem__(self, id: str) -> Preset:
        found = self._read.get(id)
        if found is None:
            if not _NAME.fullmatch(id):
                raise KeyError(id)
            try:
                text = self._folder.joinpath(f"{id}.toml").read_text("utf-8")
            except FileNotFoundError:
                raise KeyError(id) from None
            found = self._read[id] = parse(f"{id}.toml", text)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.heads)

    def __len__(self) -> int:
        return len(self.heads)

    def find(self, name: str) -> Preset | None:
        """The entry of this id or alias."""
        try:
            return self[name]
        except KeyError:
            id = self._aliases.get(name)
            return None if id is None else self[id]

    @functools.cached_property
    def heads(self) -> Mapping[str, Head]:
        """What finding takes of every entry, without reading their models."""
        found = {file.name.removesuffix(".toml"): head(_beginning(file.path))
                 for file in os.scandir(self._folder) if file.name.endswith(".toml")}
        return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))

    def glance(self) -> Iterator[tuple[Preset, tuple[str, ...]]]:
        """Every entry without its models, and their ids: for lists. Reading what is known of two thousand models takes longer."""
        for id in self:
            text = self._folder.joinpath(f"{id}.toml").read_text("utf-8")
            top, _, models = text.partition(_MODELS)
            yield parse(f"{id}.toml", top), tuple(_MODEL.findall(models))

    @functools.cached_property
    def _aliases(self) -> Mapping[str, str]:
        return {alias: id for id, entry in self.heads.items() for alias in entry.aliases}


def _beginning(path: str) -> str:
    """The text that a head fits into. Three hundred plain reads take 3 ms, three hundred text files ten times that."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, HEAD_BYTES).decode("utf-8", "ignore")
    finally:
        os.close(file)


@functools.cache
def presets() -> Catalogue:
    """The catalogue that came with this version."""
    return Catalogue(Path(__file__).with_name("catalog"))


def head(text: str) -> Head:
    """The few lines that finding takes, which stand before the models, one line each."""
    values: dict[str, Any] = {}
    for name, value in _HEAD.findall(text.partition(_MODELS)[0]):
        try:
            values[name] = json.loads(value)
        except ValueError:
            continue                         # whoever reads the whole file is told what is wrong
    try:
        return msgspec.convert(values, Head)
    except msgspec.ValidationError:
        return Head()


def parse(name: str, text: str) -> Preset:
    """One file. Raises CatalogError naming the file and the line."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        line = re.search(r"at line (\d+)", str(e))
        raise CatalogError(f"{name}:{line[1] if line else text.count(chr(10)) + 1}: {e}") from None
    try:
        preset = msgspec.convert({"id": name.removesuffix(".toml")} | raw, Preset)
    except msgspec.ValidationError as e:
        raise CatalogError(f"{name}:{_line(text, str(e))}: {e}") from None
    for problem, word in _wrong(preset, name):
        raise CatalogError(f"{name}:{_line_with(text, word)}: {problem}")
    return preset


def _wrong(preset: Preset, name: str) -> list[tuple[str, str]]:
    """(what is wrong, a text that stands on its line)"""
    found = [(f"unknown quirk {quirk!r}", quirk) for quirk in preset.quirks if quirk not in QUIRKS]
    if f"{preset.id}.toml" != name:
        found.append((f"the id {preset.id!r} is not the name of the file", "id"))
    if preset.wire not in WIRES:
        found.append((f"unknown wire {preset.wire!r}", "wire"))
    if preset.auth not in AUTHS:
        found.append((f"unknown auth {preset.auth!r}", "auth"))
    if not preset.in_process and not _URL.match(preset.base_url):
        found.append((f"base_url {preset.base_url!r} must be http(s) without a trailing slash", "base_url"))
    if preset.docs and not preset.docs.startswith("https://"):
        found.append((f"docs {preset.docs!r} must be an https address", "docs"))
    used = placeholders(preset)
    found += [(f"the placeholder {{{hole}}} has no line in vars", f"{{{hole}}}") for hole in used if hole not in preset.vars]
    found += [(f"nothing uses the variable {hole!r}", hole) for hole in preset.vars if hole not in used]
    seen: set[str] = set()
    for model in preset.models:
        if model.id in seen:
            found.append((f"model {model.id!r} stands there twice", f'"{model.id}"'))
        seen.add(model.id)
    return found


def placeholders(preset: Preset) -> dict[str, None]:
    """What an account fills in, in the order of first use."""
    texts = (preset.base_url, preset.models_url, *preset.query.values(), *preset.headers.values())
    return dict.fromkeys(hole for text in texts for hole in _PLACEHOLDER.findall(text))


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with its placeholders filled; one without a value stays as it is."""
    return _PLACEHOLDER.sub(lambda hole: values.get(hole[1]) or hole[0], text)


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


def facts(preset: Preset) -> dict[str, dict[str, Any]]:
    """What the entry says of each model, by id: only what it knows, for merging with what a user wrote."""
    found = {model.id: {name: value for name in ModelFacts.__struct_fields__ if (value := getattr(model, name)) is not None}
             for model in preset.models}
    for values in found.values():
        if "price" in values:
            values["price"] = msgspec.structs.replace(values["price"], source=preset.price_source, as_of=preset.price_as_of)
    return found
