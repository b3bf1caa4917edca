"""Data sets of the paper by Fischer and Ma: generators of the synthetic ones, loaders of the real ones.

Each function returns a :class:`Dataset`, which unpacks into X and labels. Generators are seeded. Loaders read
files from a folder, which is given as an argument or named by the environment variable MERCAT_DATA. They do
not download anything; if a file is missing, the error says where to get it.
"""

from ._dataset import Dataset
from ._real import from_npz, mammoth, mnist_even
from ._single_cell import hela_cell_cycle, pancreas, paul15, tabula_sapiens_blood
from ._synthetic import (
    Spiked,
    circle,
    gauss5,
    gauss5_d,
    gauss5_s,
    gauss10,
    smiley,
    spiked,
    unif5,
)

__all__ = [
    "Dataset",
    "Spiked",
    "circle",
    "from_npz",
    "gauss5",
    "gauss5_d",
    "gauss5_s",
    "gauss10",
    "hela_cell_cycle",
    "mammoth",
    "mnist_even",
    "pancreas",
    "paul15",
    "smiley",
    "spiked",
    "tabula_sapiens_blood",
    "unif5",
]
