"""What the tests of the store share: a clock that stands still, responses of few words."""
from gateway.core.ports import Kept


class StillClock:
    """Both times by hand."""

    def __init__(self, at: float = 1_000_000.0) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return self.at


def kept(id_: str, owner: str = "ann", previous: str = "", created: float = 1_000_000.0, size: int = 2,
         items: tuple[str, ...] = ()) -> Kept:
    return Kept(id=id_, owner=owner, created=created, previous=previous, body=b"{}".ljust(size), input=b"[]", items=items,
                target="a/m")


def ids(found: list[Kept]) -> list[str]:
    return [one.id for one in found]
