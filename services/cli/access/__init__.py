"""Users and roles: access.toml, edited.

signing_file.py       access.signing.toml, edited
access_document.py    the file while it is edited: comments and order stay
user.py               `tandem user`: users, secrets and roles
"""
