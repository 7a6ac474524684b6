"""JAX on the processor, as two devices: before JAX counts them.

These tests compare bits, which on a GPU are others; benchmarks/gpu_check.py is for that.
"""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
)
