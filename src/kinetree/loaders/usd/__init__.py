"""Models from USD files with the schemas of UsdPhysics; the package ``usd-core`` reads them."""

from kinetree.loaders.usd.reader import read_usd

__all__ = ["read_usd"]
