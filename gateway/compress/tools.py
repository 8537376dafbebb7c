"""What did a tool do? Names of the tools of many agents, and what their arguments say: a command, a file read, a file written."""
import re
from typing import Any, Final

import msgspec

from gateway.compress.segment import Segment

READS: Final = frozenset({"read", "readfile", "view", "cat", "openfile", "getfile", "viewfile", "readtextfile", "readmanyfiles",
                          "fsread", "readfiles", "getfilecontents", "readnotebook", "notebookread"})
WRITES: Final = frozenset({"write", "writefile", "edit", "strreplaceeditor", "applypatch", "replace", "createfile", "multiedit",
                           "editfile", "strreplace", "searchreplace", "writetofile", "fswrite", "strreplacebasededittool"})
_SHELL: Final = re.compile(r"bash|shell|terminal|command|^sh$|^exec|^run$|^cmd$|^execute|powershell")
_COMMANDS: Final = ("command", "cmd", "script", "commands", "input", "code")
_FILES: Final = ("file_path", "path", "filename", "file", "absolute_path", "target_file", "filePath", "filepath", "notebook_path")
# The whole command prints one file, or a part of it.
_PRINTS: Final = re.compile(r"^\s*(?:cd\s+\S+\s*&&\s*)?(?:(?:cat|head|tail|nl|less|more|bat)\b[^|;&><\n]*?|sed\s+-n\s+\S+)"
                            r"\s([^\s|;&><-][^\s|;&><]*)\s*$")
_SHELL_WORDS: Final = re.compile(r"^(?:\S*/)?(?:bash|sh|zsh|pwsh|powershell)$|^-\w*c$")


def plain(tool: str) -> str:
    """A tool's own name, without the server that it comes from."""
    name = tool.rpartition("__")[2].rpartition(".")[2]
    return name.lower().replace("_", "").replace("-", "")


def is_shell(segment: Segment) -> bool:
    return _SHELL.search(plain(segment.tool)) is not None


def arguments(segment: Segment) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(segment.arguments) if segment.arguments else None
    except (msgspec.DecodeError, RecursionError):
        return {"input": segment.arguments}
    return given if isinstance(given, dict) else {"input": given}


def command(segment: Segment) -> str:
    """What a shell was told, without the shell itself."""
    given = arguments(segment)
    said = next((given[name] for name in _COMMANDS if given.get(name)), "")
    if isinstance(said, list):
        said = " ".join(str(word) for word in said if not _SHELL_WORDS.match(str(word)))
    return said if isinstance(said, str) else ""


def file_read(segment: Segment) -> str:
    """The file whose text this result is; nothing for other results."""
    if plain(segment.tool) in READS:
        return _file(segment) or "?"
    if is_shell(segment) and (found := _PRINTS.match(command(segment))):
        return found[1]
    return ""


def is_read(segment: Segment) -> bool:
    return plain(segment.tool) in READS or bool(file_read(segment))


def file_written(segment: Segment) -> str:
    return _file(segment) if plain(segment.tool) in WRITES else ""


def _file(segment: Segment) -> str:
    given = arguments(segment)
    return next((str(given[name]) for name in _FILES if isinstance(given.get(name), str) and given[name]), "")


def texts(value: Any) -> str:
    """Every text in a call's arguments."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(texts(item) for item in value.values())
    return "\n".join(texts(item) for item in value) if isinstance(value, list) else ""
