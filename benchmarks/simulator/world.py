"""How do the providers of a synthetic day behave? Latency, failures, outages, quotas and prices, by a seed and the hour.

What happens to an attempt depends on the seed, the request, the provider and how often it was tried: never on the strategy. So all
strategies meet the same day, and the difference is theirs.
"""
from math import exp, log
from statistics import NormalDist
from typing import NamedTuple
from zlib import crc32

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.secret import Secret
from gateway.providers.registry import Account, Ceiling, Model, Price, Provider
from gateway.routing.places import Candidate

HOUR_S = 3600.0
WALL_0 = 1_800_000_000.0                     # what the clock on the wall says at the beginning of the day
WARM_S = 300.0                               # how long a provider keeps the beginning of a prompt
CACHED = 0.1                                 # share of the price that cached tokens cost
SILENCE_S = 30.0                             # until a silent upstream is given up (first_token_s of this day)
_NORMAL = NormalDist()
_UTILISED = {"session": "anthropic-ratelimit-unified-5h", "weekly": "anthropic-ratelimit-unified-7d"}


class Outage(msgspec.Struct, frozen=True):
    """``kind``: down (an error at once), silent (nothing until the time is up), flaps (every other fails), slow (six times)."""
    start_h: float
    end_h: float
    kind: str


class Quota(msgspec.Struct, frozen=True):
    """What one account may use in a window that begins anew every ``hours``, the first time ``first_h`` hours into the day; as a
    part of all tokens that the day asks for."""
    window: str
    hours: float
    part: float
    first_h: float
    used: float = 0.0                        # share that is used when the day begins


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """One provider with one model. ``places``: requests at once that each account takes; ``admits`` is its true context, which
    the catalogue knows as ``context`` or not at all."""
    id: str
    first_s: float
    spread: float = 0.35
    rate: float = 60.0
    fails: float = 0.003
    price: tuple[float, float] | None = (1.0, 4.0)
    keys: int = 1
    places: int = 1000
    quotas: tuple[Quota, ...] = ()
    outages: tuple[Outage, ...] = ()
    tired: float = 0.0                       # how much slower at the busiest hour
    context: int | None = 200_000
    admits: int = 200_000
    limits: Ceiling = Ceiling()
    weight: float = 1.0
    staggered_h: float = 0.0                 # the second account's windows begin so much later, the third's twice that …

    def provider(self, order: int) -> Provider:
        price = None if self.price is None else Price(input=self.price[0], output=self.price[1], cached=self.price[0] * CACHED)
        return Provider(id=self.id, name=self.id, base_url=f"https://{self.id}.example/v1", order=order, limits=self.limits,
                        accounts=tuple(Account(n, Secret(f"sk-{self.id}-{n}")) for n in range(1, self.keys + 1)),
                        models={"m": Model("m", context=self.context, price=price, tools=True)})


class Asked(NamedTuple):
    """One request of the day. ``session`` "" = a single question; of its ``prompt`` tokens ``sent`` were in the session's last
    turn, and ``opening`` are how every conversation named ``begins`` begins."""
    number: int
    at: float
    prompt: int
    answer: int
    session: str = ""
    turn: int = 0
    sent: int = 0
    begins: str = ""
    opening: int = 0


class Answer(NamedTuple):
    """``after_s``: from the start of the attempt to its end. An answer has no error."""
    after_s: float
    error: GatewayError | None
    first_s: float = 0.0
    cost: float = 0.0
    headers: dict[str, str] = {}


class World:
    """One day of one strategy: what is used up, what is under way, what lies in caches."""

    def __init__(self, sites: tuple[Site, ...], seed: int, tokens: int) -> None:
        """``tokens``: what all requests of the day ask for together."""
        self.tokens = tokens
        self.sites = {site.id: site for site in sites}
        self.seed = seed
        self.running: dict[str, int] = {}
        self._used: dict[tuple[str, str, int], float] = {}
        self._warm: dict[tuple[str, str], float] = {}

    def answer(self, asked: Asked, candidate: Candidate, tries: int, now: float) -> Answer:
        """What an attempt that begins now comes to; called once for each."""
        site, account = self.sites[candidate.target.provider.id], candidate.key[2]
        luck, pace = self._dice(f"{asked.number}/{site.id}/{tries}")
        outage = next((each.kind for each in site.outages if each.start_h * HOUR_S <= now < each.end_h * HOUR_S), "")
        if outage == "down" or (outage == "flaps" and luck < 0.5):
            return Answer(0.3 + pace, GatewayError("server_error", "it is down"))
        if outage == "silent":
            return Answer(SILENCE_S, GatewayError("timeout", "nothing came"))
        spent = self._spent(site, candidate, now)
        if spent is not None:
            return Answer(0.15, GatewayError("rate_limited", "quota exceeded", retry_after_s=spent))
        if self.running.get(account, 0) >= site.places:
            return Answer(0.1, GatewayError("rate_limited", "too many requests at once"))
        if asked.prompt + asked.answer > site.admits:
            # Read to the end before it is refused; most refusals do not say how much would have fitted.
            return Answer(1.0 + asked.prompt / 40_000, GatewayError("context_too_large", "the context is too small"))
        if luck < site.fails:
            return Answer(0.5 + pace, GatewayError("server_error", "it failed"))
        return self._answered(site, candidate, asked, pace, now, 6.0 if outage == "slow" else 1.0)

    def _answered(self, site: Site, candidate: Candidate, asked: Asked, pace: float, now: float, slower: float) -> Answer:
        account, warm = candidate.key[2], self._cached(candidate, asked, now)
        busy = 1 + site.tired * max(0.0, 1 - abs((now / HOUR_S) % 24 - 15) / 5)
        thinking = exp(log(site.first_s) + site.spread * _NORMAL.inv_cdf(pace))
        first_s = thinking * slower * busy * (1.0 if not asked.prompt else 0.4 + 0.6 * (asked.prompt - warm) / asked.prompt)
        after_s = first_s + asked.answer / site.rate * slower
        for quota in site.quotas:
            name = (account, quota.window, self._window(quota, site, candidate, now))
            self._used[name] = self._used.get(name, self._before(quota, name)) + asked.prompt - 0.9 * warm + asked.answer
        if asked.session:
            self._warm[account, asked.session] = self._warm[account, asked.begins] = now + after_s
        told = site.price or (1.0, 4.0)
        cost = (told[0] * (asked.prompt - warm + CACHED * warm) + told[1] * asked.answer) / 1e6
        return Answer(after_s, None, first_s, cost, self._headers(site, candidate, now))

    def _cached(self, candidate: Candidate, asked: Asked, now: float) -> int:
        """Tokens that this account still holds: of the session's last turn, or of how such conversations begin."""
        for name, tokens in ((asked.session, asked.sent), (asked.begins, asked.opening)):
            since = self._warm.get((candidate.key[2], name)) if tokens else None
            if since is not None and now - since <= WARM_S:
                return tokens
        return 0

    def _spent(self, site: Site, candidate: Candidate, now: float) -> float | None:
        """Seconds until the first exhausted window begins anew; None while all have room."""
        ends = [self._end(quota, site, candidate, now) for quota in site.quotas if self._share(quota, site, candidate, now) >= 1]
        return max(ends) - now if ends else None

    def _headers(self, site: Site, candidate: Candidate, now: float) -> dict[str, str]:
        found: dict[str, str] = {}
        for quota in site.quotas:
            name = _UTILISED[quota.window]
            found[f"{name}-utilization"] = f"{min(self._share(quota, site, candidate, now), 1.0):.4f}"
            found[f"{name}-reset"] = str(round(WALL_0 + self._end(quota, site, candidate, now)))
        return found

    def _share(self, quota: Quota, site: Site, candidate: Candidate, now: float) -> float:
        name = (candidate.key[2], quota.window, self._window(quota, site, candidate, now))
        return self._used.get(name, self._before(quota, name)) / (quota.part * self.tokens)

    def _before(self, quota: Quota, name: tuple[str, str, int]) -> float:
        return quota.used * quota.part * self.tokens if name[2] == 0 else 0.0

    def _window(self, quota: Quota, site: Site, candidate: Candidate, now: float) -> int:
        first_h = quota.first_h + site.staggered_h * (candidate.account.ordinal - 1)
        return 0 if now < first_h * HOUR_S else 1 + int((now / HOUR_S - first_h) // quota.hours)

    def _end(self, quota: Quota, site: Site, candidate: Candidate, now: float) -> float:
        first_h = quota.first_h + site.staggered_h * (candidate.account.ordinal - 1)
        return (first_h + self._window(quota, site, candidate, now) * quota.hours) * HOUR_S

    def _dice(self, name: str) -> tuple[float, float]:
        """Two numbers between 0 and 1 that belong to this name."""
        drawn = crc32(f"{self.seed}/{name}".encode())
        mixed = crc32(f"{drawn}:{name}".encode())
        return (drawn + 0.5) / 2**32, (mixed + 0.5) / 2**32
