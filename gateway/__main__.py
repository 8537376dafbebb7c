"""``python -m gateway`` is the console script."""
from gateway.cli import main

if __name__ == "__main__":
    main()
