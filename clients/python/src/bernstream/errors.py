"""The error of this package."""


class SynopsisError(ValueError):
    """Says what is wrong with a synopsis or a query."""
