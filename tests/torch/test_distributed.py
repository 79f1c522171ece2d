"""Evaluation over processes: `torch.distributed` with gloo, `mp.spawn`, and a sampler that pads."""

from __future__ import annotations

import socket

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from support import assert_same_result, evaluate
from test_tensors import WORKLOAD, pairs
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from detmap import Evaluator

IMAGES = list(pairs(*WORKLOAD))


class Images(Dataset):
    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, i):
        return IMAGES[i]


def work(rank, world_size, port, folder):
    """What each process of a training job does at the end of an epoch."""
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size)
    sampler = DistributedSampler(Images(), world_size, rank, shuffle=True, seed=3)  # pads to a multiple of world_size
    categories = [item["id"] for item in WORKLOAD[0]["categories"]]
    evaluator = Evaluator(box_format="xywh", categories=categories, duplicates="first")
    for batch in DataLoader(Images(), batch_size=2, sampler=sampler, collate_fn=list):
        ids, predictions, targets = zip(*batch, strict=True)
        evaluator.update(predictions, targets, image_ids=ids)
    merged = evaluator.sync(dist.all_gather_object)
    (folder / f"{rank}.state").write_bytes(merged.to_bytes())
    (folder / f"{rank}.count").write_text(f"{len(evaluator)} {len(merged)} {merged.compute()['AP']!r}")
    dist.destroy_process_group()


@pytest.mark.parametrize("world_size", [1, 3])
def test_every_process_gets_the_bits_of_one(world_size, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if world_size == 1:
        work(0, 1, port, tmp_path)
    else:
        mp.spawn(work, (world_size, port, tmp_path), nprocs=world_size)
    expected = evaluate(*WORKLOAD)
    states = {(tmp_path / f"{rank}.state").read_bytes() for rank in range(world_size)}
    for state in states:
        merged = Evaluator.from_bytes(state)
        assert len(merged) == len(IMAGES)
        assert_same_result(merged.compute(), expected)
    for rank in range(world_size):
        own, every, value = (tmp_path / f"{rank}.count").read_text().split()
        assert int(own) == -(-len(IMAGES) // world_size)
        assert int(every) == len(IMAGES)
        assert float(value) == expected["AP"]
    assert torch.__version__
