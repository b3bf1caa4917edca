"""Loaders for the paper's single-cell data sets, from files that the user has downloaded."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ._cells import (
    Cells,
    keep_expressed,
    keep_protein_coding,
    normalize_counts,
    read_cells,
)
from ._dataset import Dataset
from ._files import Folder, find, open_hdf5, read_columns, read_table
from ._real import from_npz

Genes = bool | str | os.PathLike[str] | Iterable[str]

# Cell types of clusters 1 to 19, as named by scanpy.
PAUL15_TYPES = ["Ery"] * 6 + ["MEP", "Mk", "GMP", "GMP", "DC", "Baso", "Baso"]
PAUL15_TYPES += ["Mo", "Mo", "Neu", "Neu", "Eos", "Lymph"]
HELA_MATRIX = "GSM4224315_out_gene_exon_tagged.dge_exonssf002_WT.txt"


def paul15(folder: Folder = None, *, normalize: bool = True) -> Dataset:
    """Blood formation in mouse bone marrow: 2730 cells and 3451 genes (Paul et al. 2015).

    Parameters
    ----------
    folder : str, path or None, default=None
        Folder that contains the data; None means the one named by the environment variable MERCAT_DATA. The
        file is one of

        - ``paul15.npz``, with X and labels, used unchanged;
        - ``paul15.h5``, the file used by scanpy and the PAGA repository.
    normalize : bool, default=True
        Scale each cell's counts to a total of 10,000 and take log(1 + x). Fischer and Ma used pre-processed
        data but do not describe the steps.

    Returns
    -------
    Dataset
        X with the informative genes listed in the file, and the cluster and type of each cell, e.g. "7MEP".

    Examples
    --------
    >>> from mercat import datasets
    >>> X, cluster = datasets.paul15("data")  # doctest: +SKIP
    """
    path = find(
        folder,
        ["paul15.npz", "paul15.h5", "paul15/paul15.h5"],
        "For Paul15, download https://falexwolf.de/data/paul15.h5 into the folder. It is the "
        "file behind scanpy.datasets.paul15.",
    )
    if path.suffix == ".npz":
        return from_npz(path)
    with open_hdf5(path) as file:
        X = file["data.debatched"][()].T.astype(np.float32)
        genes = file["data.debatched_rownames"][()].astype(str)
        cells = file["data.debatched_colnames"][()].astype(str)
        clusters = file["cluster.id"][()].ravel().astype(int)
        informative = file["info.genes_strings"][()].astype(str)
        if not X.shape == (len(clusters), len(genes)) == (len(cells), len(genes)):
            raise ValueError(
                f"{path} has a matrix of shape {X.shape}, but {len(cells)} cell names, {len(genes)} gene "
                f"names and {len(clusters)} cluster labels."
            )
        if not np.isin(clusters, range(1, len(PAUL15_TYPES) + 1)).all():
            raise ValueError(f"{path} must have clusters 1 to {len(PAUL15_TYPES)}.")
    # Equivalent gene names are joined by semicolons: take the first.
    genes, first = np.unique([gene.split(";")[0] for gene in genes], return_index=True)
    is_informative = np.isin(genes, informative)
    X = X[:, first[is_informative]]
    labels = [f"{cluster}{PAUL15_TYPES[cluster - 1]}" for cluster in clusters]
    return Dataset(
        normalize_counts(X) if normalize else X,
        labels,
        feature_names=genes[is_informative],
        sample_names=cells,
        source=str(path),
    )


def pancreas(folder: Folder = None, *, protein_coding: Genes = True) -> Dataset:
    """Development of the mouse pancreas: cells of embryonic days 12.5 to 15.5 (GSE132188).

    Keeps protein-coding genes that are expressed in at least one cell. Labels are the clusters of Figure 3 of
    Bastidas-Ponce et al. (2019), or "unassigned".

    Parameters
    ----------
    folder : str, path or None, default=None
        Folder that contains the data; None means the one named by the environment variable MERCAT_DATA. The
        file is one of

        - ``pancreas.npz``, with X and labels, used unchanged;
        - ``GSE132188_adata.h5ad.h5``, or ``pancreas.h5ad`` or ``pancreas.loom`` with the
          same annotation.
    protein_coding : bool, str, path or iterable of str, default=True
        Genes to keep. True keeps the protein-coding genes of ``Mus_musculus.GRCm39.110.gtf.gz`` in the
        folder, the annotation used by Fischer and Ma. A path keeps those of another GTF file, an iterable
        the genes with these names or Ensembl ids. False keeps all genes.

    Returns
    -------
    Dataset
        X as stored: already normalised, and sparse if the file stores it so.

    Examples
    --------
    >>> from mercat import datasets
    >>> X, cluster = datasets.pancreas("data", protein_coding=False)  # doctest: +SKIP
    """
    path = find(
        folder,
        ["pancreas.npz", "GSE132188_adata.h5ad.h5", "pancreas.h5ad", "pancreas.loom"],
        "For the pancreas, download https://ftp.ncbi.nlm.nih.gov/geo/series/GSE132nnn/GSE132188/"
        "suppl/GSE132188_adata.h5ad.h5 into the folder.",
    )
    if path.suffix == ".npz":
        return from_npz(path)
    genes = _genes_to_keep(
        path,
        protein_coding,
        "Mus_musculus.GRCm39.110.gtf.gz",
        "https://ftp.ensembl.org/pub/release-110/gtf/mus_musculus/",
    )
    cells = read_cells(path)
    return _labelled_dataset(cells, genes, "clusters_fig3_final", path, mitochondrial=True)


def tabula_sapiens_blood(folder: Folder = None, *, protein_coding: Genes = True) -> Dataset:
    """Human blood cells of Tabula Sapiens measured with the assay 10x 3' v3.

    Keeps protein-coding genes, except mitochondrial ones, that are expressed in at least one of these cells.
    Labels are the annotated cell types.

    Parameters
    ----------
    folder : str, path or None, default=None
        Folder that contains the data; None means the one named by the environment variable MERCAT_DATA. The
        file is one of

        - ``tabula_sapiens_blood.npz``, with X and labels, used unchanged;
        - ``tabula_sapiens_blood.h5ad`` or ``tabula_sapiens_blood.loom``.
    protein_coding : bool, str, path or iterable of str, default=True
        Genes to keep, as in :func:`pancreas`. True uses ``gencode.v38.annotation.gtf.gz``.

    Returns
    -------
    Dataset
        X as stored: already normalised, and sparse if the file stores it so.

    Examples
    --------
    >>> from mercat import datasets
    >>> X, cell_type = datasets.tabula_sapiens_blood("data")  # doctest: +SKIP
    """
    name = "tabula_sapiens_blood"
    path = find(
        folder,
        [f"{name}.npz", f"{name}.h5ad", f"{name}.loom"],
        "For Tabula Sapiens, open https://cellxgene.cziscience.com/collections/"
        'e5f58829-1a66-40b5-a624-9046778e74f5, download "Tabula Sapiens - Blood" as h5ad and '
        f"save it in the folder as {name}.h5ad.",
    )
    if path.suffix == ".npz":
        return from_npz(path)
    genes = _genes_to_keep(
        path,
        protein_coding,
        "gencode.v38.annotation.gtf.gz",
        "https://ftp.ebi.ac.uk/pub/databases/gencode/Gencode_human/release_38/",
    )
    cells = read_cells(path)
    cells = cells.keep_cells(cells.annotation("assay", path) == "10x 3' v3")
    if cells.X.shape[0] == 0:
        raise ValueError(f'{path} must contain cells of the assay "10x 3\' v3", got none.')
    return _labelled_dataset(cells, genes, "cell_type", path, mitochondrial=False)


def hela_cell_cycle(folder: Folder = None, *, normalize: bool = True) -> Dataset:
    """HeLa cells and their cell-cycle phases (Schwabe et al. 2020, GSE142277).

    Keeps cells with a phase, and genes that are expressed in at least one of them.

    Parameters
    ----------
    folder : str, path or None, default=None
        Folder that contains the data; None means the one named by the environment variable MERCAT_DATA. The
        data are either ``hela_cell_cycle.npz``, with X and labels, used unchanged; or both of

        - ``GSM4224315_out_gene_exon_tagged.dge_exonssf002_WT.txt``, also with .gz: exonic counts of the
          wild type, genes by cells, from GEO;
        - ``hela_phases.csv``: columns cell and phase, as estimated by Revelio.
    normalize : bool, default=True
        Scale each cell's counts to a total of 10,000 and take log(1 + x). Fischer and Ma do not describe
        their normalisation.

    Returns
    -------
    Dataset
        X and the phase of each cell.

    Examples
    --------
    >>> from mercat import datasets
    >>> X, phase = datasets.hela_cell_cycle("data")  # doctest: +SKIP
    """
    advice = (
        f"For the HeLa cells, download {HELA_MATRIX}.gz from "
        "https://www.ncbi.nlm.nih.gov/geo/query/acc.cgi?acc=GSM4224315 into the folder. For the "
        "phases, run getCellCyclePhaseAssignInformation of "
        "https://github.com/danielschw188/Revelio in R, and save them in the folder with "
        "write.csv(data.frame(cell = myData@cellInfo$cellID, phase = myData@cellInfo$ccPhase), "
        '"hela_phases.csv", row.names = FALSE).'
    )
    path = find(folder, ["hela_cell_cycle.npz", f"{HELA_MATRIX}.gz", HELA_MATRIX], advice)
    if path.suffix == ".npz":
        return from_npz(path)
    columns = read_columns(find(folder, ["hela_phases.csv"], advice), "cell", "phase")
    phases = dict(zip(*columns, strict=True))
    matrix, genes, names = read_table(path)
    known = np.array([name in phases for name in names], dtype=bool)
    if not known.any():
        raise ValueError(
            f"hela_phases.csv must name cells of {path} ({', '.join(names[:3])}, ...), got none of them."
        )
    # As objects: fixed-width strings lose trailing zero bytes.
    annotation = {"name": np.array(names, dtype=object)}
    cells = Cells(np.ascontiguousarray(matrix.T), annotation, {"name": np.array(genes)})
    cells = keep_expressed(cells.keep_cells(known))
    return Dataset(
        normalize_counts(cells.X) if normalize else cells.X,
        [phases[name] for name in cells.cells["name"]],
        feature_names=cells.genes["name"],
        sample_names=cells.cells["name"],
        source=str(path),
    )


def _genes_to_keep(path: Path, protein_coding: Genes, name: str, url: str) -> Any:
    """Genes to keep: None for all, the path of a GTF file, or a list of names or ids."""
    if protein_coding is False:
        return None
    if protein_coding is not True:
        return protein_coding
    return find(
        path.parent,
        [name, name.removesuffix(".gz")],
        f"To keep only protein-coding genes, download {url}{name} into the folder, or pass the path of "
        "another GTF file as protein_coding; protein_coding=False keeps all genes.",
    )


def _labelled_dataset(
    cells: Cells, genes: Any, label: str, path: Path, *, mitochondrial: bool
) -> Dataset:
    labels = cells.annotation(label, path)
    if genes is not None:
        cells = keep_protein_coding(cells, genes, mitochondrial=mitochondrial)
    cells = keep_expressed(cells)
    return Dataset(
        cells.X,
        labels,
        feature_names=cells.genes["name"],
        sample_names=cells.cells["name"],
        source=str(path),
    )
