"""Rows processed on a torch device: stored on it, or streamed to it.

Blocks are as large as the free memory of the device allows. Data in host memory are copied to pinned buffers
by a separate thread, and from there on a separate stream, while the previous block is processed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from .._extras import require
from .arrays import TILE, Array, blocks, is_torch, to_numpy
from .source import RowSource, merged
from .threads import Workers

_BYTES_PER_ROW = 48_000  # estimate of the temporary memory for placing a point
_MAX_ROWS = 1 << 18  # rows per block: enough to keep any GPU busy
_ROWS_WITHOUT_CUDA = 1 << 13  # rows per block on other devices
_VALUES_TO_SUM = 1 << 26  # values per block for sums
_MEMORY_FRACTION = 0.6  # fraction of the free memory to use
_PINNED = 1 << 24  # values copied from a GPU at a time
T = TypeVar("T")


def find_device(device: Any, X: Any) -> Any:
    """The requested torch device, or that of X; None for NumPy."""
    if device is None:
        return X.device if is_torch(X) and X.device.type != "cpu" else None
    instead = "leave device out to compute with NumPy"
    torch = require("torch", f"device={device!r}", "torch", instead)
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        found = None
    if found is None or found.type not in ("cpu", "cuda", "mps"):
        raise ValueError(
            f"device must be None, 'cpu', 'cuda', 'cuda:<number>' or 'mps', got {device!r}."
        )
    if found.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (found.index or 0) >= count:
            raise RuntimeError(
                f"device={device!r} needs a GPU that torch can use, found {count} "
                f"(torch {torch.__version__})."
            )
        return torch.device(
            "cuda", torch.cuda.current_device() if found.index is None else found.index
        )
    if found.type == "mps" and not torch.backends.mps.is_available():
        raise RuntimeError(f"device={device!r} needs an Apple GPU that torch can use, found none.")
    # Tensors on "mps" report the index 0.
    return torch.device("mps", 0) if found.type == "mps" else torch.device("cpu")


def check_tensor(X: Any, name: str = "X") -> Any:
    """Check for a dense 2-D tensor of numbers; convert half precision to float32."""
    import torch

    if X.is_sparse or X.layout is not torch.strided:
        raise ValueError(f"{name} must be a dense tensor, got the layout {X.layout}.")
    if X.ndim != 2:
        raise ValueError(f"{name} must have 2 dimensions, got {X.ndim}.")
    if X.dtype.is_complex:
        raise ValueError(f"{name} must hold real numbers, got the type {X.dtype}.")
    X = X.detach()
    return X.float() if X.dtype.is_floating_point and X.element_size() < 4 else X


def check_finite_tensor(X: Any, name: str = "X") -> None:
    """Raise ValueError for NaN and infinity."""
    import torch

    if not X.dtype.is_floating_point:
        return
    for block in blocks(X.shape[0], max(1, _VALUES_TO_SUM // max(1, X.shape[1]))):
        if bool(torch.isfinite(X[block].sum())):
            continue
        # The sum may overflow although all values are finite.
        for i, j in torch.nonzero(~torch.isfinite(X[block]))[:1].tolist():
            value, row = float(X[block][i, j]), block.start + i
            raise ValueError(
                f"{name} must have no NaN or infinity, got {value} in row {row}, column {j}."
            )


def upload(array: Any, device: Any) -> Array:
    """Move an array to a device, in a precision that the device supports."""
    import torch

    tensor = torch.as_tensor(array, device="cpu") if not is_torch(array) else array
    if device.type == "mps" and tensor.dtype == torch.float64:
        tensor = tensor.to(torch.float32)
    return tensor.to(device)


def upload_all(record: Any, device: Any) -> Any:
    """Move the arrays of a named tuple, recursively, to a device."""
    moved = {}
    for name, value in record._asdict().items():
        if isinstance(value, np.ndarray):
            moved[name] = upload(value, device)
        elif hasattr(value, "_asdict"):
            moved[name] = upload_all(value, device)
    return record._replace(**moved)


def download(tensor: Any) -> np.ndarray:
    """Copy a tensor to host memory; a large one from a GPU through pinned memory, which is much faster."""
    import torch

    flat = tensor.reshape(-1)
    if not tensor.is_cuda or len(flat) <= _PINNED:
        return to_numpy(tensor)
    out = torch.empty(flat.shape, dtype=flat.dtype, device="cpu")
    buffers = [
        torch.empty(_PINNED, dtype=flat.dtype, pin_memory=True, device="cpu") for _ in range(2)
    ]
    events = [torch.cuda.Event() for _ in buffers]
    parts = blocks(len(flat), _PINNED)
    for k in range(len(parts) + 1):
        if k < len(parts):
            size = parts[k].stop - parts[k].start
            buffers[k % 2][:size].copy_(flat[parts[k]], non_blocking=True)
            events[k % 2].record()
        if k > 0:  # the previous part, while this one is copied
            events[(k - 1) % 2].synchronize()
            out[parts[k - 1]] = buffers[(k - 1) % 2][: parts[k - 1].stop - parts[k - 1].start]
    return np.asarray(out.reshape(tensor.shape))


def download_all(record: Any) -> Any:
    """Move the arrays of a named tuple, recursively, to host memory."""
    moved = {}
    for name, value in record._asdict().items():
        if is_torch(value):
            moved[name] = download(value)
        elif hasattr(value, "_asdict"):
            moved[name] = download_all(value)
    return record._replace(**moved)


@contextmanager
def _block_memory_advice(device: Any, rows: int) -> Iterator[None]:
    """Context that re-raises out-of-memory errors with advice, for blocks of this number of rows."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(
            f"{device} ran out of memory with blocks of {rows} rows. Set the environment variable "
            f"MERCAT_DEVICE_ROWS to {max(1, rows // 4)} or less, free other tensors, or pass X as a NumPy "
            "array, which is streamed from host memory."
        ) from error


class TorchSource(RowSource):
    """Rows of a tensor, an array or a sparse matrix, processed on a torch device."""

    def __init__(self, X: Any, workers: Workers, device: Any) -> None:
        super().__init__(X, workers)
        self.device = device
        self._resident = is_torch(X) and X.device == device
        self.block = self._rows_from_memory()
        # Between n / 32 and n / 16 rows, so that the legs of all tiles together cover the landmarks.
        self.tile = min(self.block, max(TILE, 1 << (self.shape[0] // 32).bit_length()))

    def check_values(self, names: Any = None) -> None:
        """Raise ValueError for NaN and infinity; `names` are the column names."""
        if is_torch(self.X):
            check_finite_tensor(self.X)
        else:
            super().check_values(names)

    @property
    def exact_in_single(self) -> bool:
        """Whether float32 represents every value exactly, or is the widest type of the device."""
        if self.device.type == "mps":
            return True
        kind = str(self.dtype).removeprefix("torch.").replace("bfloat16", "float16")
        return bool(np.can_cast(np.dtype(kind), np.float32))

    def _rows_from_memory(self) -> int:
        """Number of rows per block: MERCAT_DEVICE_ROWS, or the largest power of two that fits."""
        import torch

        setting = os.environ.get("MERCAT_DEVICE_ROWS")
        if setting is not None:
            if not setting.isdigit() or int(setting) < 1:
                raise ValueError(
                    f"MERCAT_DEVICE_ROWS must be an integer of at least 1, got {setting!r}."
                )
            return int(setting)
        if self.device.type != "cuda":
            return _ROWS_WITHOUT_CUDA
        free = torch.cuda.mem_get_info(self.device)[0]
        # Memory cached by torch is free, too.
        free += torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        fitting = max(1024, int(_MEMORY_FRACTION * free / (_BYTES_PER_ROW + 4 * self.shape[1])))
        return int(min(_MAX_ROWS, 1 << (fitting.bit_length() - 1)))

    @contextmanager
    def memory_advice(self) -> Iterator[None]:
        """Context that re-raises out-of-memory errors of `detail` with advice."""
        import torch

        try:
            yield
        except torch.OutOfMemoryError as error:
            raise MemoryError(
                f"{self.device} ran out of memory in detail, with {self.shape[0]} rows. Set n_detail to "
                f"{max(4, self.shape[0] // 4)} or less, so that detail is applied to a sample, or free other "
                "tensors."
            ) from error

    def to_device(self, record: Any) -> Any:
        """Move an array, or a named tuple of arrays, to the device."""
        move = upload if isinstance(record, np.ndarray) or is_torch(record) else upload_all
        return move(record, self.device)

    def to_memory(self, record: Any) -> Any:
        """Move the arrays of a named tuple, recursively, to host memory."""
        return download_all(record)

    def take(self, indices: np.ndarray) -> Array:
        """Rows with these indices, in this order, on the device."""
        if is_torch(self.X):
            import torch

            return self.X[torch.as_tensor(indices, device=self.X.device)].to(self.device)
        return self._uploaded(self.X[indices])

    def part(self, indices: np.ndarray | None) -> RowSource:
        """Source of some rows; the source itself for None."""
        if indices is None:
            return self
        rows = self.take(indices) if is_torch(self.X) else self.X[indices]
        return TorchSource(rows, self.workers, self.device)

    def take_all(self) -> Array:
        """All rows on the device."""
        return self.X.to(self.device) if is_torch(self.X) else self._uploaded(self.X)

    def reduce(self, function: Callable[[Any], T], merge: Callable[[T, T], T]) -> T:
        """Merge the results of a function over all blocks."""
        parts = blocks(self.shape[0], max(64, _VALUES_TO_SUM // max(1, self.shape[1])))
        with _block_memory_advice(self.device, parts[0].stop):
            results = (function(rows) for rows, _ in self._blocks(parts))
            return merged(results, len(parts), merge)

    def each(self, function: Callable[[Any, int], T]) -> Iterator[T]:
        """Yield function(rows, index of the first row) for each block, in order."""
        parts = blocks(self.shape[0], self.block)
        with _block_memory_advice(self.device, self.block):
            for rows, start in self._blocks(parts):
                yield function(rows, start)

    def scratch(self, shape: tuple[int, ...]) -> Array:
        """Uninitialised array for positions on the device."""
        import torch

        return torch.empty(shape, dtype=torch.float32, device=self.device)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Uninitialised array for results, of the kind and on the device of X."""
        if not is_torch(self.X):
            return np.empty(shape, dtype=dtype)
        import torch

        if self.X.device.type == "mps":
            dtype = "float32"
        return torch.empty(shape, dtype=getattr(torch, dtype), device=self.X.device)

    def store(self, values: Array, out: Any, block: slice) -> None:
        """Write the results of a block into `out`."""
        out[block] = upload(values, out.device) if is_torch(out) else to_numpy(values)

    # ------------------------------------------------------------------ from host to device

    def _blocks(self, parts: list[slice]) -> Iterator[tuple[Array, int]]:
        """Yield blocks of rows on the device, each copied while the previous one is processed."""
        if self._resident:
            for part in parts:
                yield self.X[part], part.start
            return
        if self.device.type != "cuda" or (is_torch(self.X) and self.X.device.type != "cpu"):
            for part in parts:
                yield self._uploaded(self.X[part]), part.start
            return
        stream = _Stream(self.device)
        with ThreadPoolExecutor(1, thread_name_prefix="mercat-copy") as pool:
            pending = pool.submit(stream.copy, self.X, parts[0])
            for k, part in enumerate(parts):
                rows = stream.wait_for(pending.result())
                if k + 1 < len(parts):
                    pending = pool.submit(stream.copy, self.X, parts[k + 1])
                yield rows, part.start

    def _uploaded(self, rows: Any) -> Array:
        """Rows in host memory as a dense tensor on the device."""
        return upload(_tensor(rows), self.device)


def _tensor(rows: Any) -> Any:
    """Rows in host memory as a dense tensor."""
    import torch

    if is_torch(rows):
        return rows
    dense = rows.toarray() if scipy.sparse.issparse(rows) else rows
    dense = dense.astype(dense.dtype.newbyteorder("="), copy=False)
    return torch.as_tensor(np.ascontiguousarray(dense), device="cpu")


class _Stream:
    """Copies blocks from host memory through two pinned buffers, on a separate stream."""

    def __init__(self, device: Any) -> None:
        import torch

        self.device = device
        self._stream = torch.cuda.Stream(device)
        self._pinned: list[Any] = [None, None]
        self._copied: list[Any] = [None, None]  # event at the end of the last copy from each buffer
        self._turn = 0

    def copy(self, X: Any, part: slice) -> tuple[Any, Any]:
        """Start to copy a block of X to the device; return it and the event at the end of the copy."""
        import torch

        rows = _tensor(X[part])
        if not rows.is_pinned():
            rows = self._in_pinned(rows)
        with torch.cuda.stream(self._stream):
            on_device = rows.to(self.device, non_blocking=True)
            copied = torch.cuda.Event()
            copied.record(self._stream)
        self._copied[self._turn] = copied
        self._turn = 1 - self._turn
        return on_device, copied

    def _in_pinned(self, rows: Any) -> Any:
        import torch

        turn = self._turn
        if self._copied[turn] is not None:
            self._copied[turn].synchronize()  # wait for the last copy from this buffer
        if self._pinned[turn] is None or len(self._pinned[turn]) < len(rows):
            self._pinned[turn] = torch.empty(
                rows.shape, dtype=rows.dtype, pin_memory=True, device="cpu"
            )
        buffer = self._pinned[turn][: len(rows)]
        buffer.copy_(rows)
        return buffer

    def wait_for(self, block: tuple[Any, Any]) -> Any:
        """Make the computing stream wait for the copy of a block, and return the block."""
        import torch

        on_device, copied = block
        computing = torch.cuda.current_stream(self.device)
        computing.wait_event(copied)
        on_device.record_stream(computing)
        return on_device
