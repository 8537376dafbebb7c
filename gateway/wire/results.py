"""How is a failed result of a tool said where the format has no field for it? In words, before what it says."""
from gateway.core.request import Part, Result, Text


def spoken(result: Result) -> list[Part]:
    """The parts of a result; those of a failed one begin with the word that models know from every format."""
    parts = result.parts
    if not result.is_error:
        return parts
    if parts and isinstance(parts[0], Text):
        return [Text(f"Error: {parts[0].text}", parts[0].cache_control), *parts[1:]]
    return [Text("Error:" if parts else "Error"), *parts]
