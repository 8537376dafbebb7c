"""What runs when nothing is configured? Every catalogued provider whose usual key variable is set, and demo.

``demo`` is answered in this process: the first request works on a machine without any key and without network. It stands
last; routing gives it ``auto`` only when it is alone.
"""
from collections.abc import Mapping

from gateway.config.schema import Config, KeyTable, ProviderTable
from gateway.config.upstreams import variables
from gateway.core.secret import Secret
from gateway.providers.presets import placeholders, presets

DEMO = "demo"


def config(env: Mapping[str, str]) -> Config:
    """The configuration that somebody would have written for this environment."""
    found = [ProviderTable(id=id, preset=id, api_keys=(KeyTable(key=Secret(key)),)) for id, entry in presets().heads.items()
             if not entry.variant_of and (key := next((value for name in entry.env if (value := env.get(name, "").strip())), ""))
             and _complete(id, env)]
    return Config(providers=(*found, ProviderTable(id=DEMO, preset=DEMO)))


def _complete(id: str, env: Mapping[str, str]) -> bool:
    """Does the environment say everything that its address needs, and is there a model to ask for?"""
    preset = presets()[id]
    return bool(preset.models) and placeholders(preset).keys() <= variables(preset, {}, env).keys()
