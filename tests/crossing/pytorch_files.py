"""pytorch_files.py save FOLDER | compare FOLDER | module FOLDER: the side of pytorch_test that is PyTorch.

save: writes kinds.pt, a state dict with a tensor of each kind, and checkpoint.pt, with dicts in dicts; and what is in
them as text, kinds.txt and checkpoint.txt, a line for each value: its name, dtype, shape and bytes.
compare: prints the same lines of copy.pt, which must load with weights_only=True.
module: prints the names of module.pt, an archive for C++, and the sums of its tensors.
"""
import collections
import sys
import warnings

import torch

warnings.simplefilter("ignore")  # of torch.jit: deprecated, but what reads such archives


def hexadecimal(tensor):
    dense = tensor.detach().contiguous().clone().reshape(-1)
    return bytes(dense.view(torch.uint8).tolist()).hex() if dense.numel() else "-"


def line(name, tensor):
    dtype = str(tensor.dtype).replace("torch.", "")
    return f"{name} {dtype} {list(tensor.shape)} {hexadecimal(tensor)}".replace(", ", ",")


def kinds():
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    flat = torch.arange(10, dtype=torch.float64)
    values = collections.OrderedDict(
        float16=torch.tensor([1, -2.5, float("nan")], dtype=torch.float16),
        bfloat16=torch.tensor([1.5, float("inf")], dtype=torch.bfloat16),
        int64=torch.tensor(-7),
        bools=torch.tensor([[True], [False]]),
        int32=torch.tensor([[1, 2], [3, -4]], dtype=torch.int32),
        int16=torch.tensor([-2], dtype=torch.int16),
        int8=torch.tensor([-3], dtype=torch.int8),
        uint8=torch.tensor([250], dtype=torch.uint8),
        complex64=torch.tensor([1 - 2j], dtype=torch.complex64),
        complex128=torch.tensor([1 + 2j], dtype=torch.complex128),
        scalar=torch.tensor(0.25),
        empty=torch.zeros(0, 3),
        transposed=base.t(),
        row=base[1],
        column=base[:, 2],
        strided=base[::2, 1::3],
        whole=base,
        expanded=torch.tensor([5.0]).expand(2, 3),
        first_half=flat[:5],
        second_half=flat[5:],
        parameter=torch.nn.Parameter(torch.ones(2)),
        channels_last=torch.arange(16, dtype=torch.float32).reshape(1, 4, 2, 2).to(memory_format=torch.channels_last),
    )
    if hasattr(torch, "uint16"):
        values["uint16"] = torch.tensor([65535], dtype=torch.uint16)
        values["uint32"] = torch.tensor([2**32 - 1], dtype=torch.uint32)
        values["uint64"] = torch.tensor([2**63 + 1], dtype=torch.uint64)
    return values


def checkpoint():
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    net(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    return {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}


def flattened(value, name=""):
    if isinstance(value, torch.Tensor):
        return [line(name, value)]
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        return []
    return [one for key, below in items for one in flattened(below, f"{name}/{key}" if name else str(key))]


def save(folder):
    for name, value in (("kinds", kinds()), ("checkpoint", checkpoint())):
        torch.save(value, f"{folder}/{name}.pt")
        with open(f"{folder}/{name}.txt", "w") as text:
            text.write("".join(one + "\n" for one in flattened(value)))


def compare(folder):
    for one in flattened(torch.load(f"{folder}/copy.pt", weights_only=True)):
        print(one)


def module(folder):
    for name, tensor in torch.jit.load(f"{folder}/module.pt").state_dict().items():
        print(f"{name} {tensor.double().sum().item():.6f}")


torch.manual_seed(1)
{"save": save, "compare": compare, "module": module}[sys.argv[1]](sys.argv[2])
