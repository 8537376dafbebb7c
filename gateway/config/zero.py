"""What runs when nothing is configured? Every catalogued provider whose usual key variable is set, and demo.

``demo`` is answered in this process: the first request works on a machine without any key and without network. It stands
last; routing gives it ``auto`` only when it is alone.
"""
from collections.abc import Mapping

from gateway.config.schema import Config, ProviderTable
from gateway.core.secret import Secret
from gateway.providers.profiles import profiles

DEMO = "demo"


def config(env: Mapping[str, str]) -> Config:
    """The configuration that somebody would have written for this environment."""
    found = [ProviderTable(id=id, preset=id, api_keys=(Secret(key),)) for id, profile in profiles().items()
             if (key := next((value for name in profile.env if (value := env.get(name, "").strip())), ""))]
    return Config(providers=(*found, ProviderTable(id=DEMO, preset=DEMO)))
