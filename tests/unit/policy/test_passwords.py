"""The operator's password is kept as a hash that says how it was made."""
import pytest

from gateway.policy import passwords


def test_the_password_matches_its_hash_and_no_other():
    stored = passwords.hashed("correct horse")
    assert stored.startswith("scrypt$16384$8$1$") and "horse" not in stored
    assert passwords.well_formed(stored)
    assert passwords.matches("correct horse", stored)
    assert not passwords.matches("Correct horse", stored)
    assert stored != passwords.hashed("correct horse")


@pytest.mark.parametrize("stored", [
    "", "plain", "scrypt$16384$8$1$AAAA", "scrypt$1000$8$1$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAA==",
    "scrypt$999999999$8$1$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAA==", "scrypt$16384$8$1$!!$??", "bcrypt$1$2$3$4$5",
    "scrypt$16384$8$1$AAAAAAAAAAAAAAAAAAAAAA==$AAAA", "scrypt$-1$8$1$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAA==",
])
def test_what_is_no_hash_of_ours_is_told_apart(stored):
    assert not passwords.well_formed(stored)
