# Nothing: addresses.py has functions for Python only.
