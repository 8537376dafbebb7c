"""What looks at requests and answers on the operator's account? A file each; pipeline/guarding.py asks them in the order of GUARDS."""
from typing import Final

GUARDS: Final = ("secrets", "pii", "injection", "webhook")
