"""Who may do what: users and roles from one file, secrets as hashes, and the check before each call.

::

    needs.py         Action and Need: what a call asks for
    patterns.py      names and globs of topics and groups
    roles.py         Role, and the built-in ones
    principal.py     Principal: a user who was recognized, and what it may do
    table.py         AccessTable: all users of a file
    file.py          access.toml, read and checked
    scrypt.py        secrets as text that a file may hold
    credentials.py   the header `authorization: Basic …`, read
    signing.py       what users sign with, where a protocol wants signatures
    attempts.py      how often somebody may guess
    keeper.py        the table that is in force, and who a header belongs to
    rules.py         what each method of a service needs
    gate.py          all of it before a call
    throttle.py      the same refusal is logged once in a while only
    errors.py

Without `accessFile` nothing of this runs.
"""
