"""What is a tool? A name, a struct of inputs, the scopes that it needs, and a function of the operator's side that does it."""
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Final, Literal

import msgspec

from gateway.admin.errand import Ask, Errand, Nothing

Run = Callable[[Errand, Any], Awaitable[Any]]
Handler = Callable[[Errand], Awaitable[Any]]
# What must be there: the configuration, a store that is kept as well, or a gateway that runs.
Needs = Literal["config", "store", "gateway"]

READS: Final = "read:"


class Tool(msgspec.Struct, frozen=True):
    """One tool. ``secret``: its answer holds a key that is told once, so that what looks like one is not masked. ``again``: doing
    it twice is the same as doing it once. ``destroys``: it takes away what was there."""
    name: str
    scopes: tuple[str, ...]
    says: str
    run: Run
    asks: type[Ask] = Nothing
    needs: Needs = "gateway"
    secret: bool = False
    again: bool = True
    destroys: bool = False

    @property
    def reads(self) -> bool:
        """Does it change nothing, here or anywhere?"""
        return all(scope.startswith(READS) for scope in self.scopes)

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()


def as_query(handler: Handler) -> Run:
    """A handler of the API whose inputs are its query."""
    async def run(errand: Errand, asked: Ask) -> Any:
        errand.query = asked
        return await handler(errand)
    return run


def as_body(handler: Handler) -> Run:
    """One whose inputs are its body."""
    async def run(errand: Errand, asked: Ask) -> Any:
        errand.body = asked
        return await handler(errand)
    return run


def as_param(handler: Handler, hole: str) -> Run:
    """One whose only input stands in its path."""
    async def run(errand: Errand, asked: Ask) -> Any:
        errand.params = {hole: getattr(asked, asked.__struct_fields__[0])}
        return await handler(errand)
    return run


@cache
def schema(kind: type[Ask]) -> dict[str, Any]:
    """JSON Schema of the inputs: an object at the root, since clients want it there."""
    told = msgspec.json.schema(kind)
    definitions = told.pop("$defs", {})
    root = definitions.pop(told["$ref"].rpartition("/")[2]) if "$ref" in told else told
    root.pop("title", None)
    root.setdefault("properties", {})
    root.pop("description", None)                # the tool's own says it
    return {**root, "$defs": definitions} if definitions else dict(root)
