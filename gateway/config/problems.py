"""What is wrong with a configuration? Every problem, each once, as (path, message)."""
import difflib
from collections.abc import Iterable

Problem = tuple[str, str]


class ConfigError(Exception):
    """A configuration that is refused; ``problems`` has all that is wrong, shape first."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(render(problems))
        self.problems = problems


class Problems:
    """Collects. The first problem of a path is the one that counts: what follows from it is not told as well."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.warnings: list[Problem] = []
        self._paths: set[str] = set()

    def add(self, path: str, message: str) -> None:
        if not self.has(path):
            self._paths.add(path)
            self.found.append((path, message))

    def warn(self, path: str, message: str) -> None:
        self.warnings.append((path, message))

    def has(self, path: str) -> bool:
        """Is this path, or something that it lies in, bad already?"""
        while path:
            if path in self._paths:
                return True
            cut = max(path.rfind("."), path.rfind("["))
            path = path[:cut] if cut > 0 else ""
        return False


def render(problems: Iterable[Problem]) -> str:
    """One ``path: message`` a line."""
    return "\n".join(f"{path}: {message}" if path else message for path, message in problems)


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean "x"?`` when something known is close, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else ""
