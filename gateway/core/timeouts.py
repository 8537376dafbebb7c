"""How long may each stage of one upstream call take? Facts that providers carry and the transport keeps."""
import msgspec


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; 0 = none. Contract section 2, [timeouts]."""
    connect_s: float = 10
    first_byte_s: float = 60
    first_token_s: float = 90
    idle_s: float = 90
    total_s: float = 600
