"""Tables of single cells with annotations, and the paper's filters of genes and cells."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._data.columns import is_missing
from .._data.sparse import check_sparse
from .._extras import require
from .._files.containers import check_hdf5
from .._files.untrusted import reading
from ._files import open_hdf5, open_text

# An attribute in the ninth column of a GTF file, such as gene_name "Actb".
ATTRIBUTE = re.compile(r'(\w+) "([^"]*)"')
# Names of the mitochondrial chromosome.
MITOCHONDRION = {"chrM", "M", "MT", "chrMT"}


@dataclass
class Cells:
    """Expression matrix X (cells x genes, dense or CSR) and annotations of cells and genes."""

    X: Any
    cells: Mapping[str, npt.NDArray[Any]]
    genes: Mapping[str, npt.NDArray[Any]]

    def keep_cells(self, mask: npt.NDArray[np.bool_]) -> Cells:
        return Cells(self.X[mask], {k: v[mask] for k, v in self.cells.items()}, self.genes)

    def keep_genes(self, mask: npt.NDArray[np.bool_]) -> Cells:
        return Cells(self.X[:, mask], self.cells, {k: v[mask] for k, v in self.genes.items()})

    def annotation(self, name: str, source: Path) -> npt.NDArray[np.str_]:
        """An annotation of the cells as strings, "unassigned" where it is missing."""
        if name not in self.cells:
            raise ValueError(
                f"{source} must annotate its cells with {name!r}, got {sorted(self.cells)}."
            )
        values = self.cells[name].astype(object)
        return np.where(is_missing(values), "unassigned", values).astype(str)


def read_cells(path: Path) -> Cells:
    """Read cells from a loom or h5ad file."""
    return _read_loom(path) if path.suffix == ".loom" else _read_h5ad(path)


def _read_h5ad(path: Path) -> Cells:
    anndata = require("anndata", "Reading h5ad files", "anndata")
    check_hdf5(path)
    with reading(path), warnings.catch_warnings():
        # anndata warns about files in old formats, such as those published in 2019.
        warnings.simplefilter("ignore")
        data = anndata.read_h5ad(path)
    X: Any = data.X
    if hasattr(X, "tocsr"):
        check_sparse(X, str(path))
        X = sparse.csr_array(X)
    else:
        X = np.asarray(X)
    _check_table(X, path)
    cells = {name: data.obs[name].to_numpy() for name in data.obs} | {
        "name": data.obs_names.to_numpy()
    }
    genes = {"name": data.var_names.to_numpy().astype(str)}
    if "feature_name" in data.var:
        # CELLxGENE: Ensembl ids as the index, symbols in a column.
        genes = {"name": data.var["feature_name"].to_numpy().astype(str), "id": genes["name"]}
    return Cells(X, cells, genes)


def _read_loom(path: Path) -> Cells:
    """Read a loom file: genes x cells, with one HDF5 dataset per annotation."""
    with open_hdf5(path) as file:
        X = np.ascontiguousarray(file["matrix"][()].T)
        cells, genes = (
            {name: _strings(group[name][()]) for name in group}
            for group in (file["col_attrs"], file["row_attrs"])
        )
    cells["name"] = cells.get("CellID", np.arange(len(X)).astype(str))
    if "Gene" not in genes:
        raise ValueError(f"{path} must name its genes in row_attrs/Gene, got {sorted(genes)}.")
    _check_table(X, path)
    for columns, n in ((cells, X.shape[0]), (genes, X.shape[1])):
        for name, values in columns.items():
            if values.shape[:1] != (n,):
                raise ValueError(f"{path} must have {n} values of {name!r}, got {values.shape}.")
    names = {"name": genes["Gene"]}
    if "Accession" in genes:
        names["id"] = genes["Accession"]
    return Cells(X, cells, names)


def _check_table(X: Any, path: Path) -> None:
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold a table of numbers, got {X.dtype} of shape {X.shape}.")


def _strings(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.char.decode(values.astype(bytes)) if values.dtype.kind in "OS" else values


def keep_protein_coding(
    cells: Cells, genes: str | os.PathLike[str] | Iterable[str], *, mitochondrial: bool
) -> Cells:
    """Keep the genes that are protein-coding according to a GTF annotation or a list of names or ids."""
    if isinstance(genes, str | os.PathLike):
        coding = _coding_in_gtf(Path(genes), mitochondrial=mitochondrial)
    else:
        coding = {_unversioned(gene) for gene in genes}
    mask = np.zeros(cells.X.shape[1], dtype=bool)
    for names in cells.genes.values():
        mask |= np.array([_unversioned(name) in coding for name in names], dtype=bool)
    if not mask.any():
        examples = ", ".join(next(iter(cells.genes.values()))[:3])
        raise ValueError(
            f"protein_coding must name genes of the data, got none: its genes are {examples}, ..."
        )
    return cells.keep_genes(mask)


def _coding_in_gtf(path: Path, *, mitochondrial: bool) -> set[str]:
    """Names and ids of protein-coding genes in a GTF file of Gencode or Ensembl."""
    coding: set[str] = set()
    with open_text(path) as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) < 9 or fields[2] != "gene":
                continue
            attributes = dict(ATTRIBUTE.findall(fields[8]))
            gene_type = attributes.get("gene_type", attributes.get("gene_biotype"))
            if gene_type == "protein_coding" and (mitochondrial or fields[0] not in MITOCHONDRION):
                coding |= {
                    _unversioned(attributes[key])
                    for key in ("gene_id", "gene_name")
                    if key in attributes
                }
    return coding


def _unversioned(gene: str) -> str:
    """Strip the version of an Ensembl id; other names, which may contain a dot, are unchanged."""
    return gene.split(".")[0] if gene.startswith("ENS") else gene


def keep_expressed(cells: Cells) -> Cells:
    """Keep genes whose total expression is positive."""
    return cells.keep_genes(np.asarray(cells.X.sum(axis=0)).ravel() > 0)


def normalize_counts(X: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Scale each cell's counts to a total of 10,000 and take log(1 + x)."""
    total = X.sum(axis=1, keepdims=True, dtype=np.float64)
    return np.log1p(X / np.where(total > 0, total, 1) * 1e4).astype(np.float32)
