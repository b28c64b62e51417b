"""The root of the errors that bytes can cause."""


class FormatError(ValueError):
    """Bytes, or values meant to become bytes, that the store format does not allow."""
