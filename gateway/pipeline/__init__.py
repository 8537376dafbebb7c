"""The story of one request. Read serve.py first."""
