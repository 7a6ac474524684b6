"""Environments on a GPU: control steps of a quadruped per second, torch tensors in and out.

    python benchmarks/gpu_learning.py                     # on a CUDA device, with torch and CuPy
    python benchmarks/gpu_learning.py --worlds 4096

A control step is four steps of the mechanics with rigid contact, PD targets, noise, pushes,
observation, reward and reset: one launch.
"""

import argparse
import time

import torch
from gpu_checks.environments import walking


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, nargs="*", default=(4096, 65_536))
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    for worlds in given.worlds:
        begin = time.perf_counter()
        env = walking(worlds)
        actions = [0.3 * torch.randn(worlds, 12, device="cuda") for _ in range(8)]
        env.step(actions[0])
        torch.cuda.synchronize()
        print(f"{worlds} worlds: first control step after {time.perf_counter() - begin:.1f} s")
        for k in range(50):
            env.step(actions[k % 8])
        torch.cuda.synchronize()
        begin, worst, failed = time.perf_counter(), [], []
        for k in range(given.steps):
            *_, info = env.step(actions[k % 8])
            worst.append(info["error"])
            failed.append(info["failed"].sum())
        torch.cuda.synchronize()
        rate = worlds * given.steps / (time.perf_counter() - begin)
        error = torch.stack(worst)
        print(
            f"  {rate / 1e6:.2f} M control steps/s, {4 * rate / 1e6:.1f} M of the mechanics; error "
            f"of velocities at contacts: median {float(error.median()):.1e}, above 1e-4 m/s in "
            f"{float((error > 1e-4).float().mean()):.2%}, worst {float(error.max()):.1e}; "
            f"{int(sum(failed))} worlds failed",
            flush=True,
        )


if __name__ == "__main__":
    main()
