"""Where arrays of an environment are: on the CPU or a device, of which library and precision."""

import numpy as np

from kinetree.errors import ModelError, need


class Place:
    """Where arrays are, of which library and precision."""

    def __init__(self, device, arrays, dtype):
        self.device = str(device)
        self.on_host = self.device == "cpu"
        self.kind = arrays or ("numpy" if self.on_host else "torch")
        if self.kind not in ("numpy", "torch", "cupy") or (self.kind == "numpy") > self.on_host:
            raise ModelError(
                f"arrays must be 'numpy' (device 'cpu'), 'torch' or 'cupy', got {arrays!r} for "
                f"device {self.device!r}"
            )
        if self.kind == "cupy" and self.on_host:
            raise ModelError("arrays='cupy' are on a GPU: say device='cuda'")
        self.dtype = dtype or ("float64" if self.on_host else "float32")
        if self.dtype not in ("float32", "float64"):
            raise ModelError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
        extra = {"torch": "torch", "cupy": "gpu"}.get(self.kind, "")
        self.library = need(self.kind, f"arrays={self.kind!r}", extra)

    def __repr__(self):
        return f"{self.dtype} in {self.kind} arrays on {self.device}"

    def array(self, x):
        """An array of ours: the same memory where it is one already."""
        if self.kind == "torch":
            dtype = getattr(self.library, self.dtype)
            if not self.library.is_tensor(x):
                x = self.library.as_tensor(np.asarray(x, self.dtype))
            return x.detach().to(device=self.device, dtype=dtype)
        return self.library.asarray(x, dtype=self.dtype)

    def numpy(self, x):
        """The array as one of NumPy's, the same memory on the CPU."""
        if self.kind == "torch":
            return x.cpu().numpy()
        return x.get() if self.kind == "cupy" else x

    def wrapped(self, results):
        """Results of compiled code on the CPU as arrays of ours."""
        if self.kind == "torch":
            return [self.library.from_numpy(x) for x in results]
        return list(results)

    def result(self, x):
        """Outputs for the agent, in float32."""
        if self.kind == "torch":
            return x.float()
        return x.astype("float32", copy=False)

    def where(self, which, new, old):
        """``new`` in some worlds, else ``old``."""
        which = which.reshape(-1, *[1] * (len(old.shape) - 1))
        return self.library.where(which, new, old)
