"""The paper's data: generators of the synthetic sets, loaders of the real ones.

Each returns a :class:`Dataset`, which unpacks into X and labels. Generators are seeded.
Loaders read files from a folder, given or named by the environment variable MERCAT_DATA,
download nothing, and say what to download where a file is missing.
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
