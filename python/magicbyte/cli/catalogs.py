"""The check of an Iceberg catalog: it belongs to Iceberg tables."""

from __future__ import annotations

import click

from magicbyte.options.ingest import CatalogOptions

__all__ = ["check_catalog"]


def check_catalog(given: CatalogOptions, *, needed: bool) -> None:
    """Raises `UsageError` if there is no catalog although it is needed, or the other way round."""
    if needed and given.catalog is None:
        raise click.UsageError("--format iceberg needs --catalog")
    if not needed and (given.catalog is not None or given.catalog_properties):
        raise click.UsageError("--catalog and --catalog-property are for Iceberg tables")
