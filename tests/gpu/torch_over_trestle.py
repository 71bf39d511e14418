#!/usr/bin/env python3
"""PyTorch's torch.distributed with backend nccl over Trestle's libnccl.so.2: two ranks as processes, each on GPU 0.

Usage: torch_over_trestle.py LIBNCCL. Every collective's result is compared. Says "skipped: ..." and ends well where there
is no PyTorch or no GPU.
"""

import os
import socket
import subprocess
import sys

RANKS = 2
COUNT = 1 << 18


def why_not():
    try:
        import torch
        import torch.distributed as dist
    except ImportError as error:
        return f"no PyTorch: {error}"
    if not torch.cuda.is_available():
        return "PyTorch finds no GPU"
    return "" if dist.is_nccl_available() else "this PyTorch has no backend nccl"


def check(name, found, expected):
    import torch

    torch.cuda.synchronize()
    if not torch.equal(found, expected):
        raise SystemExit(f"{name} is wrong: {found.flatten()[:4].tolist()}, not {expected.flatten()[:4].tolist()}")


def numbers(rank, dtype):
    """Small whole numbers, so that sums are exact in every type."""
    import torch

    return (torch.arange(RANKS * COUNT, device="cuda") % 8 + rank).to(dtype)


def collectives(dist, rank, dtype):
    import torch

    each = [numbers(r, dtype) for r in range(RANKS)]
    mine, total = each[rank], sum(each)
    block = slice(rank * COUNT, (rank + 1) * COUNT)

    data = mine.clone()
    dist.all_reduce(data)
    check("all_reduce", data, total)
    data = mine.clone()
    dist.broadcast(data, 1)
    check("broadcast", data, each[1])
    data = torch.empty_like(torch.cat(each))
    dist.all_gather_into_tensor(data, mine)
    check("all_gather", data, torch.cat(each))
    data = torch.empty_like(mine[:COUNT])
    dist.reduce_scatter_tensor(data, mine)
    check("reduce_scatter", data, total[block])
    data = torch.empty_like(mine)
    dist.all_to_all_single(data, mine)
    check("all_to_all", data, torch.cat([other[block] for other in each]))
    data = torch.empty_like(mine)
    other = 1 - rank
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, mine, other), dist.P2POp(dist.irecv, data, other)]):
        work.wait()
    check("send and recv", data, each[other])


def training_step(dist, rank):
    """The gradients of DistributedDataParallel are the mean of the ranks' own."""
    import torch

    torch.manual_seed(7)
    alone = torch.nn.Linear(512, 512, bias=False).cuda()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512, bias=False).cuda(), device_ids=[0])
    model.module.load_state_dict(alone.state_dict())
    inputs = [torch.full((4, 512), float(r + 1), device="cuda") for r in range(RANKS)]
    model(inputs[rank]).sum().backward()
    alone(sum(inputs) / RANKS).sum().backward()
    check("DistributedDataParallel", model.module.weight.grad, alone.weight.grad)


def run_rank():
    import datetime

    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=30))
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64):
        collectives(dist, rank, dtype)
    training_step(dist, rank)
    dist.barrier()
    with open("/proc/self/maps") as maps:
        loaded = sorted({line.split(maxsplit=5)[5].strip() for line in maps if "libnccl" in line})
    if [os.path.realpath(path) for path in loaded] != [os.path.realpath(os.environ["LD_PRELOAD"])]:
        raise SystemExit(f"other libraries of NCCL are loaded: {loaded}")
    dist.destroy_process_group()
    if rank == 0:
        print(f"fine: PyTorch {torch.__version__} over {loaded[0]}")


def main():
    if "RANK" in os.environ:
        return run_rank()
    if len(sys.argv) != 2:
        raise SystemExit("Usage: torch_over_trestle.py LIBNCCL")
    missing = why_not()
    if missing:
        print(f"skipped: {missing}")
        return None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = dict(os.environ, LD_PRELOAD=os.path.realpath(sys.argv[1]), WORLD_SIZE=str(RANKS), LOCAL_WORLD_SIZE=str(RANKS),
                  MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__)],
                              env=dict(shared, RANK=str(rank), LOCAL_RANK=str(rank))) for rank in range(RANKS)]
    if any([rank.wait() for rank in ranks]):
        raise SystemExit("a rank has failed")
    return None


if __name__ == "__main__":
    main()
