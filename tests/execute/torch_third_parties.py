"""Run under torchrun: what third parties do with a group of opticcl, those that are installed; ranks name them."""

import importlib.util
import sys
import tempfile

import torch
import torch.distributed as dist

done = []


def third_party(function):
    """Run a check if its package is installed."""
    if importlib.util.find_spec(function.__name__) is not None:
        function()
        done.append(function.__name__)
    return function


def data():
    """Rows and their sums, the same on all ranks."""
    rows = torch.arange(64.0).view(16, 4) / 64
    return torch.utils.data.TensorDataset(rows, rows.sum(1, keepdim=True))


def equal_on_all_ranks(model):
    """Whether parameters are those of the first rank, bit by bit, and were trained."""
    own = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    first = own.clone()
    dist.broadcast(first, 0)
    return torch.equal(own, first) and bool(torch.isfinite(own).all())


@third_party
def accelerate():
    """Prepare, backward, clip, reduce, gather; the group is made before the Accelerator."""
    from accelerate import Accelerator

    if not dist.is_initialized():
        dist.init_process_group("opticcl")
    accelerator = Accelerator(cpu=True)
    assert dist.get_backend() == "opticcl"
    torch.manual_seed(accelerator.process_index)
    model, loader = torch.nn.Linear(4, 1), torch.utils.data.DataLoader(data(), batch_size=2)
    model, optimiser, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1), loader)
    for rows, due in loader:
        loss = ((model(rows) - due) ** 2).mean()
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    assert equal_on_all_ranks(model)
    rank, size = accelerator.process_index, accelerator.num_processes
    assert accelerator.reduce(torch.tensor([1.0 + rank])).item() == size * (size + 1) / 2
    assert accelerator.gather(torch.tensor([rank])).tolist() == list(range(size))
    assert accelerator.pad_across_processes(torch.ones(rank + 1)).tolist() == [1.0] * (rank + 1) + [0.0] * (
        size - 1 - rank
    )


@third_party
def transformers():
    """The Trainer in the group that was made before it; it refuses `ddp_backend="opticcl"`."""
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        """A layer with the interface of the Trainer."""

        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, rows, labels):
            """Loss and result."""
            found = self.layer(rows)
            return {"loss": ((found - labels) ** 2).mean(), "found": found}

    arguments = TrainingArguments(
        tempfile.mkdtemp(), use_cpu=True, max_steps=3, report_to=[], save_strategy="no", disable_tqdm=True
    )
    assert dist.get_backend() == "opticcl"
    rows = [{"rows": row, "labels": due} for row, due in data()]
    trainer = Trainer(Model(), arguments, train_dataset=rows)
    trainer.train()
    assert equal_on_all_ranks(trainer.model)


@third_party
def lightning():
    """DDPStrategy with the name of the backend."""
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.strategies import DDPStrategy

    class Model(LightningModule):
        """A layer."""

        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch):
            """Loss."""
            return ((self.layer(batch[0]) - batch[1]) ** 2).mean()

        def configure_optimizers(self):
            """Gradient descent."""
            return torch.optim.SGD(self.parameters(), 0.1)

    if dist.is_initialized():
        dist.destroy_process_group()
    model = Model()
    trainer = Trainer(
        accelerator="cpu", devices=int(sys.argv[1]), strategy=DDPStrategy(process_group_backend="opticcl"), max_epochs=1,
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(model, torch.utils.data.DataLoader(data(), batch_size=2))
    assert dist.get_backend() == "opticcl"
    assert equal_on_all_ranks(model)


print("rank", dist.get_rank() if dist.is_initialized() else 0, "done:", *done, flush=True)
if dist.is_initialized():
    dist.destroy_process_group()
