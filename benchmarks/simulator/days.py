"""Which days are replayed? Each is a question that some strategy answers better than the others."""
from collections.abc import Callable
from math import cos, pi
from random import Random

import msgspec

from benchmarks.simulator.world import HOUR_S, Asked, Outage, Quota, Site
from gateway.providers.registry import Ceiling


class Scenario(msgspec.Struct, frozen=True):
    """``load`` makes the requests of a day from dice, hours and their number."""
    name: str
    about: str
    sites: tuple[Site, ...]
    load: Callable[[Random, float, int], list[Asked]]


def arrivals(dice: Random, hours: float, n: int) -> list[float]:
    """Times of a working day: most at three in the afternoon, a tenth of that at night."""
    found: list[float] = []
    while len(found) < n:
        at = dice.random() * hours
        if dice.random() < 0.55 - 0.45 * cos((at - 3) / 12 * pi):
            found.append(at * HOUR_S)
    return sorted(found)


def singles(dice: Random, hours: float, n: int) -> list[Asked]:
    """Questions that stand alone."""
    return [Asked(number, at, _size(dice, 1200, 0.8), _size(dice, 250, 0.6))
            for number, at in enumerate(arrivals(dice, hours, n))]


def large(dice: Random, hours: float, n: int) -> list[Asked]:
    """Half of them with whole files."""
    return [Asked(number, at, _size(dice, 70_000 if dice.random() < 0.5 else 1500, 0.5), _size(dice, 250, 0.6))
            for number, at in enumerate(arrivals(dice, hours, n))]


def talks(dice: Random, hours: float, n: int) -> list[Asked]:
    """Agents that begin several conversations with the same words; each turn sends everything again, a minute or so later."""
    found: list[Asked] = []
    for team, start in enumerate(arrivals(dice, hours, n // 24)):
        opening = _size(dice, 20_000, 0.4)
        for member in range(6):
            at, sent = start + member * 30 + dice.random() * 20, 0
            for turn in range(4):
                new, answer = _size(dice, 1500, 0.6), _size(dice, 300, 0.5)
                prompt = (sent or opening) + new
                found.append(Asked(0, at, prompt, answer, f"s{team}.{member}", turn, sent, f"t{team}", opening))
                sent = prompt + answer
                at += 15 + dice.expovariate(1 / 45)
    found.sort(key=lambda asked: asked.at)
    return [asked._replace(number=number) for number, asked in enumerate(found)]


def bursts(dice: Random, hours: float, n: int) -> list[Asked]:
    """Batches: forty at once, again and again."""
    times = [at + dice.random() * 2 for at in arrivals(dice, hours, n // 40) for _ in range(40)]
    return [Asked(number, at, _size(dice, 1200, 0.8), _size(dice, 400, 0.6)) for number, at in enumerate(sorted(times))]


def _size(dice: Random, median: float, spread: float) -> int:
    return max(int(median * dice.lognormvariate(0, spread)), 16)


def plan(id: str, resets_h: float, used: float, session_h: float) -> Site:
    """A subscription: nothing a token, but a part of the day in five hours and in a week; ``used`` of this week's is gone."""
    return Site(id=id, first_s=0.9, price=(0.0, 0.0), quotas=(
        Quota("session", 5.0, 0.12, session_h), Quota("weekly", 168.0, 0.225, resets_h, used)))


def weekly(id: str, resets_h: float, used: float) -> Site:
    """One that counts weeks only."""
    return Site(id=id, first_s=0.9, price=(0.0, 0.0), quotas=(Quota("weekly", 168.0, 0.22, resets_h, used),))


SCENARIOS = (
    Scenario("calm", "nothing is wrong; some are quick, some are cheap, the first of the list is neither", (
        Site(id="listed", first_s=1.3, price=(2.0, 8.0)),
        Site(id="quick", first_s=0.4, price=(3.0, 12.0), tired=0.5),
        Site(id="cheap", first_s=2.2, price=(0.3, 1.2), rate=35),
        Site(id="fair", first_s=0.9, price=(1.0, 4.0)),
        Site(id="local", first_s=1.8, price=(0.0, 0.0), rate=25, context=32_000),
    ), singles),
    Scenario("outages", "the first is down for three hours, the second falls silent for two, the third flaps for four", (
        Site(id="one", first_s=0.8, outages=(Outage(8, 11, "down"), Outage(15, 16, "slow"))),
        Site(id="two", first_s=0.9, outages=(Outage(13, 15, "silent"), Outage(9, 9.5, "silent"))),
        Site(id="three", first_s=0.7, fails=0.02, outages=(Outage(14, 18, "flaps"), Outage(20, 21, "silent"))),
        Site(id="four", first_s=1.4, fails=0.001),
        Site(id="five", first_s=1.1, outages=(Outage(10, 12, "slow"),)),
    ), singles),
    Scenario("plans", "subscriptions with five hours and a week to mind, whose weeks end at different hours; not quite enough", (
        plan("ends-friday", 60.0, 0.20, 1.0), plan("ends-sunday", 100.0, 0.15, 2.0), plan("ends-tonight", 20.0, 0.35, 3.0),
        plan("ends-at-two", 14.0, 0.35, 4.0),
    ), singles),
    Scenario("weeks", "the same with weeks only: what is not used before its week ends is lost", (
        weekly("ends-friday", 60.0, 0.45), weekly("ends-sunday", 100.0, 0.40), weekly("ends-tonight", 20.0, 0.25),
        weekly("ends-at-two", 14.0, 0.05),
    ), singles),
    Scenario("prices", "the same model at prices that are sixty times apart; the cheap are slower and fail more often", (
        Site(id="brand", first_s=0.6, price=(5.0, 20.0), fails=0.001),
        Site(id="cloud", first_s=0.7, price=(4.0, 16.0), fails=0.002),
        Site(id="reseller", first_s=1.2, price=(1.2, 4.8), fails=0.01),
        Site(id="spot", first_s=2.0, price=(0.25, 1.0), fails=0.04, outages=(Outage(16, 17, "down"),)),
        Site(id="unknown", first_s=1.0, price=None),
    ), singles),
    Scenario("talks", "conversations that begin alike and send everything again; each account keeps what it saw for five minutes", (
        Site(id="north", first_s=1.2, price=(3.0, 15.0), keys=2), Site(id="south", first_s=1.2, price=(3.0, 15.0), keys=2),
        Site(id="west", first_s=1.3, price=(3.0, 15.0), fails=0.01),
    ), talks),
    Scenario("files", "half of the requests are large, and half of the list does not say that it cannot take them", (
        Site(id="small-a", first_s=0.6, context=None, admits=32_000), Site(id="small-b", first_s=0.7, context=None, admits=64_000),
        Site(id="wide", first_s=1.1, context=400_000, admits=400_000, price=(2.0, 8.0)),
        Site(id="widest", first_s=1.4, context=1_000_000, admits=1_000_000, price=(2.5, 10.0)),
        Site(id="told", first_s=0.9, context=64_000, admits=64_000),
    ), large),
    Scenario("rush", "forty requests at once, again and again, to accounts that take a few each", (
        Site(id="five-keys", first_s=0.8, keys=5, places=4, weight=5), Site(id="one-key", first_s=0.6, places=4, weight=1),
        Site(id="two-keys", first_s=0.7, keys=2, places=8, weight=4), Site(id="wide", first_s=1.0, places=16, weight=4),
        Site(id="limited", first_s=0.5, limits=Ceiling(concurrency=6), places=6, weight=1.5),
    ), bursts),
)
