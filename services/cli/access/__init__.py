"""Users and roles: access.toml, edited.

access_document.py    the file while it is edited: comments and order stay
user.py               `tandem user`: users, secrets and roles
"""
