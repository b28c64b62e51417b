"""Users for tests of access: each may do one kind of thing, and all have the same secret."""

from tandemmq.common.access.scrypt import GENERATED, hash_secret
from tandemmq.common.identity.credentials import authorization

HASH = hash_secret("the secret", GENERATED)

ROLES = """
[roles.producer]
publish = ["mine*"]
[roles.consumer]
subscribe = ["mine*"]
groups = ["mine-*"]
[roles.manager]
allow = ["manage"]
[roles.operates]
allow = ["operate"]
[roles.peer]
allow = ["internal"]
"""
USERS = {
    "producer": ["producer"],
    "consumer": ["consumer"],
    "reader": ["all-readers"],
    "viewer": ["viewer"],
    "manager": ["manager"],
    "operates": ["operates"],
    "peer": ["peer"],
    "nobody": [],
    "services": ["service"],
}
"""Users, each with what one kind of caller needs and nothing else."""


def access_text(**users: list[str]) -> str:
    """A file with USERS and others."""
    sections = [
        f'[users.{name}]\nsecret = "{HASH}"\nroles = [{", ".join(map(repr, roles))}]\n'
        for name, roles in {**USERS, **users}.items()
    ]
    return "".join(sections) + ROLES + '[roles.all-readers]\nsubscribe = ["*"]\n'


def credentials(user: str | None, secret: str = "the secret") -> tuple[tuple[str, str], ...]:
    """The metadata by which a user calls."""
    return () if user is None else (authorization(user, secret),)
