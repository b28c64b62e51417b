"""What a person can do about an error of the operating system."""

import errno
import os
import pwd


def cure_of(error: OSError) -> str | None:
    """In words, without a capital; None where nothing general helps."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"user {_user()} may not: run it as the owner, or give that user the right, as with chown"
    return _CURES.get(error.errno or 0)


_CURES = {
    errno.ENOTDIR: "a file lies where a directory is wanted: name another directory",
    errno.EEXIST: "a file lies where a directory is wanted: name another directory",
    errno.EISDIR: "it is a directory, and a file is wanted",
    errno.ENOSPC: "free room on that disk, or name a directory on another one",
    errno.EDQUOT: "the quota is used up: free room, or name a directory on another disk",
    errno.EROFS: "that disk is mounted read-only: name a directory on another one",
    errno.EMFILE: "raise the limit of open files (ulimit -n, LimitNOFILE)",
}


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
