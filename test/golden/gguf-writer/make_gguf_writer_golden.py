"""
Makes what the encoders of weights are held to, with the Python packages `gguf` and `torch`.

    python make_gguf_writer_golden.py [OUTPUT_FOLDER]      (needs gguf, torch, safetensors)

encoded.gguf          values (F32), and the bytes that `gguf.quants.quantize` makes of them for each block format
halves.safetensors    values (F32), and the same as F16 and BF16 by PyTorch: ties, subnormals, overflow, no number
"""

import sys
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as T
from gguf.quants import quantize
from safetensors.torch import save_file


def make_blocks(output):
    generator = np.random.default_rng(7)
    values = generator.normal(0, 1, (16, 64)).astype(np.float32)
    values[1] *= 1e-6
    values[2] *= 1000
    values[3] = 0
    values[4, :32] = np.arange(32)
    values[5] = np.abs(values[5])
    values[6] = -np.abs(values[6])
    values[7, :32] = np.arange(-16, 16) / 2
    values[8] = 0.25
    writer = gguf.GGUFWriter(output / "encoded.gguf", "llama")
    writer.add_tensor("values", values)
    for kind in (T.Q8_0, T.Q4_0, T.Q4_1):
        writer.add_tensor(kind.name, quantize(values, kind), raw_dtype=kind)
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        step()
    writer.close()


def make_halves(output):
    torch.manual_seed(7)
    special = [0.0, -0.0, 1.0, -2.0, 65504.0, 65519.0, 65520.0, -65520.0, 1e9, 3.4e38, float("inf"), float("-inf"), float("nan")]
    ties = [1 + k * 2**-11 for k in range(8)] + [1 + k * 2**-8 for k in range(8)] + [2048.5, 2049.0, 2051.0]
    small = [k * 2**-26 for k in range(20)] + [2**-14 - 2**-25, 2**-14 - 2**-26, 2**-14, 1023.5 * 2**-24, 1e-40, -3e-8]
    values = torch.cat([torch.tensor(special + ties + small), torch.randn(256), 1e-5 * torch.randn(64)]).float()
    save_file({"F32": values, "F16": values.half(), "BF16": values.bfloat16()}, output / "halves.safetensors")


folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
make_blocks(folder)
make_halves(folder)
print(f"gguf {gguf.__name__}, torch {torch.__version__}, numpy {np.__version__}")
