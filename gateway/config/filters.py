"""Which filters make the output of commands smaller? Ours, and the operator's from a folder, each with its tests passed."""
from pathlib import Path
from typing import Final

from gateway.compress import filters
from gateway.compress.filters import Filter
from gateway.compress.toolfilter import failures
from gateway.config.problems import Problems
from gateway.config.schema import Config

PATH: Final = "compression.filters"


def load(config: Config, source: Path | None, problems: Problems) -> tuple[Filter, ...]:
    """The operator's are tried before ours, and one with the name of ours takes its place. None at all where compression is off."""
    own = _own(config.compression.filters, source, problems) if config.compression.filters else {}
    if config.compression.mode == "off":
        return ()
    ours = tuple(one for one in filters.builtin() if one.name not in own)
    return filters.ordered(own.values()) + ours


def _own(folder: str, source: Path | None, problems: Problems) -> dict[str, Filter]:
    place = Path(folder).expanduser()
    if not place.is_absolute() and source is not None:
        place = source.parent / place
    if not place.is_dir():
        problems.add(PATH, f"{folder} is no folder that can be read")
        return {}
    files = sorted(file for file in place.iterdir() if file.suffix in (".toml", ".json"))
    if len(files) > filters.MAX_FILTERS:
        problems.add(PATH, f"{folder} holds more than {filters.MAX_FILTERS} filters")
        return {}
    found: dict[str, Filter] = {}
    wrong: list[str] = []
    for file in files:
        try:
            one = _read(file)
            if one.name in found:
                raise ValueError(f"the name {one.name!r} is that of another file")
            found[one.name] = one
        except ValueError as error:
            wrong.append(f"{file.name}: {error}")
    if wrong:
        problems.add(PATH, "; ".join(wrong[:10]))
    return found


def _read(file: Path) -> Filter:
    """Raises ValueError for what is no filter, or does not do what its tests say."""
    try:
        with file.open("rb") as opened:
            data = opened.read(filters.MAX_FILE_BYTES + 1)
    except OSError:
        raise ValueError("cannot be read") from None
    if len(data) > filters.MAX_FILE_BYTES:
        raise ValueError(f"is larger than {filters.MAX_FILE_BYTES} bytes")
    one = filters.parse(data.decode(), file.suffix[1:])
    for index, made in failures(one):
        raise ValueError(f"tests[{index}] gives {made[:200]!r}")
    return one
