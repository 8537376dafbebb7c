"""Under which master keys do secrets lie on the disk? From systemd's credentials, the configuration or the environment, in this order.

https://systemd.io/CREDENTIALS/ . Several keys stand one a line (or with commas): the first seals, the others only open.
"""
import base64
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateway.config.problems import Problems
from gateway.config.schema import Config
from gateway.core.secret import Secret

CREDENTIAL: Final = "gateway-master-key"
VARIABLE: Final = "GATEWAY_MASTER_KEY"
PATH: Final = "store.master_key"
KEY_BYTES: Final = 32
MAX_BYTES: Final = 4_096
_URL_SAFE: Final = str.maketrans("-_", "+/")
_HEX: Final = re.compile(r"[0-9a-fA-F]{64}")


def master_keys(config: Config, env: Mapping[str, str], problems: Problems) -> tuple[Secret, ...]:
    """Each as 64 hexadecimal digits; () where nobody names one."""
    credential = _credential(env, problems)
    sources = ((f"the credential {CREDENTIAL} ", credential), ("", _bytes(config.store.master_key.reveal())),
               (f"{VARIABLE} ", _bytes(env.get(VARIABLE, ""))))
    where, found = next(((where, found) for where, found in sources if found.strip()), ("", b""))
    if not found:
        return ()
    if importlib.util.find_spec("cryptography") is None:
        problems.add(PATH, "needs a package: pip install 'gateway[secrets]'; or leave it out")
        return ()
    keys = [found] if found is credential and len(found) == KEY_BYTES else _parsed(found)
    if keys is None:
        problems.add(PATH, f"{where}must hold 32 random bytes in base64 or hexadecimal, such as openssl rand -base64 32 makes")
        return ()
    return tuple(Secret(key.hex()) for key in dict.fromkeys(keys))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _credential(env: Mapping[str, str], problems: Problems) -> bytes:
    folder = env.get("CREDENTIALS_DIRECTORY", "")
    if not folder:
        return b""
    try:
        with (Path(folder) / CREDENTIAL).open("rb") as file:
            return file.read(MAX_BYTES)
    except FileNotFoundError:
        return b""
    except OSError:
        problems.add(PATH, f"the credential {CREDENTIAL} cannot be read")
        return b""


def _parsed(data: bytes) -> list[bytes] | None:
    """None where one of them is no key."""
    found: list[bytes] = []
    for word in re.split(r"[\s,]+", data.decode("utf-8", "replace").strip()):
        try:
            key = bytes.fromhex(word) if _HEX.fullmatch(word) else base64.b64decode(word.translate(_URL_SAFE), validate=True)
        except ValueError:
            return None
        if len(key) != KEY_BYTES:
            return None
        found.append(key)
    return found
