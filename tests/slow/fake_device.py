"""A fake second device for torch, named "far": its tensors are in CPU memory, but cannot be combined with CPU tensors.

It has two properties of a GPU. It raises errors for tensors of two devices in one operation, for NumPy conversion
without `.cpu()`, and for a generator of another device; and it has its own stream of random numbers. It does not show
the rounding of a GPU or its asynchronous execution.

torch finds the device through the entry point that `install` writes: https://docs.pytorch.org, "Autoloading
Out-of-Tree Extension". A subclass of Tensor implements the device.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

NAME = "far"
COPIES = {"aten::copy_", "aten::_to_copy"}
INDEXES = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index"}
RESHAPES = {"aten::squeeze_", "aten::unsqueeze_", "aten::t_", "aten::transpose_"}  # in place
# Operations that create tensors, and operations that torch.tensor() calls without dispatching to subclasses.
MAKES = ["arange", "eye", "full", "linspace", "rand", "randint", "randn", "randperm", "tril_indices", "triu_indices"]
PAST_CLASSES = ["_local_scalar_dense", "copy_"]
stream = torch.Generator()
libraries = []  # kept alive, because torch unregisters their operations with them


class FarTensor(Tensor):
    """A tensor of the fake device; `raw` is the CPU tensor with its values."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, raw: Tensor):
        layout = {"strides": raw.stride(), "storage_offset": raw.storage_offset(), "dtype": raw.dtype}
        tensor = Tensor._make_wrapper_subclass(cls, raw.size(), **layout, device=torch.device(NAME, 0))
        tensor.raw = raw
        return tensor

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        return run(op, args, kwargs or {})

    @property
    def data(self) -> Tensor:
        return Tensor.data.__get__(self)

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor.data.__set__(self, value)
        self.raw = value.raw

    def __format__(self, form: str) -> str:
        return format(self.raw.item(), form) if self.dim() == 0 else super().__format__(form)

    def __repr__(self, **_) -> str:
        return f"{repr(self.raw)[:-1]}, device='{self.device}')"

    def __reduce_ex__(self, protocol):
        return FarTensor, (self.raw,)

    def __deepcopy__(self, memo: dict):
        memo[id(self)] = copied = FarTensor(self.raw.clone()).requires_grad_(self.requires_grad)
        vars(copied).update({name: value for name, value in vars(self).items() if name != "raw"})
        return copied

    def __array__(self, *_):
        return self.numpy()

    def numpy(self, force: bool = False):
        if not force:
            raise TypeError(f"can't convert {self.device} tensor to numpy: use Tensor.cpu() to bring it back first")
        return self.raw.numpy(force=True)

    def tolist(self) -> list:
        return self.raw.tolist()

    def data_ptr(self) -> int:
        return self.raw.data_ptr()


def run(op, args, kwargs):
    """Run an operation on the raw tensors; RuntimeError, as on a GPU, for tensors of two devices."""
    leaves = tree_leaves((args, kwargs))
    far = [leaf for leaf in leaves if isinstance(leaf, FarTensor)]
    devices = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
    to_far = devices[0].type == NAME if devices else bool(far)
    name = op._schema.name
    if far and name not in COPIES and (others := cpu_tensors(name, args, leaves)):
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in others)
        raise RuntimeError(f"expected all tensors of {op} to be on {NAME}, but found some on the cpu: {shapes}")
    if to_far and isinstance(generator := kwargs.get("generator"), torch.Generator):
        raise RuntimeError(f"expected a generator of {NAME} for {op}, but found one of {generator.device}")
    draws = to_far and torch.Tag.nondeterministic_seeded in op.tags
    with own_random_stream() if draws else nullcontext():
        result = op(*tree_map(as_raw, args), **tree_map(as_raw, kwargs))
    if name in RESHAPES:
        with torch._C._DisableTorchDispatch():
            op(*args, **kwargs)
    if name == "aten::copy_":
        return args[0]
    known = {id(tensor.raw): tensor for tensor in far} if op._schema.is_mutable else {}
    new = FarTensor if to_far else lambda raw: raw
    return tree_map_only(Tensor, lambda raw: known[id(raw)] if id(raw) in known else new(raw), result)


@contextmanager
def own_random_stream() -> Iterator[None]:
    """Use the fake device's stream of random numbers in CPU operations."""
    near = torch.get_rng_state()
    torch.set_rng_state(stream.get_state())
    try:
        yield
    finally:
        stream.set_state(torch.get_rng_state())
        torch.set_rng_state(near)


def as_raw(value):
    """Return the CPU tensor or device for a value of the fake device."""
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == NAME else value
    return value.raw if isinstance(value, FarTensor) else value


def cpu_tensors(name: str, args, leaves: list) -> list[Tensor]:
    """Return CPU tensors that a GPU would reject; scalars are allowed, and so are indices of its own tensors."""
    near = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not isinstance(leaf, FarTensor) and leaf.dim()]
    if name in INDEXES and isinstance(args[0], FarTensor):
        indices = {id(index) for index in args[1]}
        near = [tensor for tensor in near if id(tensor) not in indices]
    return near


class Far:
    """The device module that torch expects."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def manual_seed_all(self, seed: int) -> None:
        stream.manual_seed(seed + 1)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


class NoGradients(torch.no_grad):
    """A replacement of `torch.inference_mode`, which tensor subclasses do not support: only gradients are off."""

    def __new__(cls, mode: bool = True):
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True):
        super().__init__()
        self.mode = mode

    def __enter__(self) -> None:
        self.prev = torch.is_grad_enabled()
        torch.set_grad_enabled(self.prev and not self.mode)

    def clone(self) -> "NoGradients":
        return NoGradients(self.mode)


def keeping_ties(apply: Callable) -> Callable:
    """Wrap `nn.Module._apply`, so that tied weights stay tied on the fake device."""

    def _apply(module: torch.nn.Module, fn: Callable, recurse: bool = True) -> torch.nn.Module:
        moves = not all(isinstance(parameter, FarTensor) for parameter in module.parameters())
        torch.__future__.set_swap_module_params_on_conversion(moves)
        return apply(module, fn, recurse)

    return _apply


def register() -> None:
    """Register the device; torch calls this at import after `install`."""
    torch.inference_mode = NoGradients
    torch.nn.Module._apply = keeping_ties(torch.nn.Module._apply)
    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=Far())
    libraries.append(torch.library.Library("_", "IMPL"))
    libraries[-1].fallback(lambda op, *args, **kwargs: run(op, args, kwargs), "PrivateUse1")
    libraries.append(torch.library.Library("aten", "IMPL"))
    for packet in map(torch.ops.aten.__getattr__, MAKES + PAST_CLASSES):
        for overload in packet.overloads():
            if "out" not in overload:
                op = getattr(packet, overload)
                libraries[-1].impl(op, lambda *args, op=op, **kwargs: run(op, args, kwargs), "PrivateUse1")


def install(folder: Path) -> None:
    """Write a package that registers the device in every Python with the folder on its path."""
    package = folder / "fake_device-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: fake_device\nVersion: 1\n", "utf-8")
    (package / "entry_points.txt").write_text(f"[torch.backends]\n{NAME} = fake_device:register\n", "utf-8")
    (folder / "fake_device.py").write_text(Path(__file__).read_text("utf-8"), "utf-8")
