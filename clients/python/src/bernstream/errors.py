"""What is wrong with a synopsis, or with a question to it, in words."""


class SynopsisError(ValueError):
    """What is wrong with a synopsis, or with a question to it."""
