"""Where are records kept? SQLite in a file, or memory: the ports of ``core.ports``, implemented. All SQL of the project is here."""
