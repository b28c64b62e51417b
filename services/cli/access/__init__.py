"""Users and roles: access.toml, edited; and who we are ourselves, at which cluster.

signing_file.py       access.signing.toml, edited
access_document.py    the file while it is edited: comments and order stay
replacing.py          both are replaced whole or not at all, by one editor at a time
context.py            `tandem context`: clusters by name, and which of them is used
user.py               `tandem user`: users, secrets and roles
"""
