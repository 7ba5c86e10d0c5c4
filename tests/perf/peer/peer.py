"""One training step of a 114M-parameter Qwen3-MoE in PyTorch + transformers with AdamW, timed.

The shape of configs/recipes/small.toml: 8 layers, hidden 512, 32 experts top-4 of 256, vocabulary 8,192,
2 rows of 1,024 tokens. With --ranks, the rows are divided over as many processes and the model is sharded with FSDP2
(fully_shard) over gloo. Prints one JSON object: median seconds a step and tokens a second.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed
import torch.multiprocessing
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM


rows, sequence = 2, 1024


def build(experts_implementation):
    config = Qwen3MoeConfig(
        vocab_size=8192, hidden_size=512, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4,
        head_dim=64, intermediate_size=1024, moe_intermediate_size=256, num_experts=32, num_experts_per_tok=4,
        norm_topk_prob=True, tie_word_embeddings=False, max_position_embeddings=1024, use_cache=False,
        output_router_logits=False)
    config._attn_implementation = "sdpa"
    if experts_implementation:
        config._experts_implementation = experts_implementation
    torch.manual_seed(1)
    return Qwen3MoeForCausalLM(config)


def shard(model, ranks):
    """Every layer, and what is outside of them, is gathered for its forward and its backward, as in our plan."""
    mesh = init_device_mesh("cpu", (ranks,))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)


def measure(arguments):
    """Seconds of each step, the first left out."""
    torch.set_num_threads(arguments.threads)
    model = build(arguments.experts)
    if arguments.dtype == "bf16":
        model = model.to(torch.bfloat16)
    if arguments.checkpointing:
        model.gradient_checkpointing_enable()
    if arguments.ranks > 1:
        shard(model, arguments.ranks)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    tokens = torch.randint(0, 8192, (rows // arguments.ranks, sequence))
    seconds = []
    for _ in range(arguments.steps + 1):
        begin = time.perf_counter()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
    return sum(p.numel() for p in model.parameters()), seconds[1:]


def report(arguments, parameters, seconds):
    step = statistics.median(seconds)
    print(json.dumps({
        "parameters": parameters, "dtype": arguments.dtype, "ranks": arguments.ranks, "threads": arguments.threads,
        "checkpointing": arguments.checkpointing, "step_seconds": step, "tokens_per_second": rows * sequence / step}))


def rank_main(rank, arguments, meeting_place):
    torch.distributed.init_process_group("gloo", init_method="file://" + meeting_place, rank=rank,
                                         world_size=arguments.ranks)
    parameters, seconds = measure(arguments)
    if rank == 0:
        report(arguments, parameters, seconds)
    torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--ranks", type=int, choices=[1, 2], default=1)
    parser.add_argument("--threads", type=int, default=2, help="of each rank")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--checkpointing", action="store_true", help="full activation recomputation")
    parser.add_argument("--experts", default="", help="eager or grouped_mm; empty: the library's choice")
    arguments = parser.parse_args()
    if arguments.ranks == 1:
        return report(arguments, *measure(arguments))
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank_main, (arguments, folder + "/meeting"), arguments.ranks)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
