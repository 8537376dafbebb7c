"""May they, and how much? Client keys, what a key may ask for, and limits. Decided in one synchronous step each."""
