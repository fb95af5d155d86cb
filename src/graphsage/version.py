"""The version, in one place: pyproject.toml, bundles and `graphsage --version` read it here."""

__version__ = "0.1.0"
