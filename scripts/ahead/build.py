"""Builds the shared object with all kernels, compiled for a level of processors; see ``detmap/kernels/_ahead.py``.

Kernels are compiled as `detmap warm --cpu` does it, into the same cache, with numba set to the level: its optimiser and its
code generator both aim there. Of what the cache holds the code that LLVM has optimised is taken, made position-independent
machine code, and linked with ``runtime.c``. All names but ``detmap_*`` are internal to their file, so that no kernel gets
another one's version of a function of the same name.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Target(NamedTuple):
    """A platform: the beginning of its objects' names, the triples of LLVM and zig, processors by level, what links."""

    name: str
    triple: str
    zig: str
    suffix: str = ".so"
    flags: tuple[str, ...] = ("-Wl,-z,defs", "-Wl,-z,now", "-Wl,-z,noexecstack", "-Wl,-s", "-lm")


#: glibc 2.17 is that of manylinux2014. What the cache holds has been through the code generator of x86-64: for other
#: processors it has to be compiled on one of them. Only objects for Linux have been loaded.
TARGETS = {
    one.name: one
    for one in (
        Target("linux-x86_64", "x86_64-unknown-linux-gnu", "x86_64-linux-gnu.2.17"),
        Target("darwin-x86_64", "x86_64-apple-darwin", "x86_64-macos", ".dylib", ()),
        Target("win32-x86_64", "x86_64-pc-windows-gnu", "x86_64-windows-gnu", ".dll", ()),
    )
}


#: What a level is compiled for besides, as LLVM names it; `detmap_level` of the runtime asks for it too. Ice Lake and Zen 4
#: have it, which count the bits of codes by vectors.
FEATURES = {"x86-64-v4": "+avx512vpopcntdq"}


class Compiled(NamedTuple):
    """A kernel: its label, the types of its arguments and result, the name of its code, and the code."""

    label: str
    signature: Any
    entry: str
    module: Any


def main() -> None:
    options = _options()
    started = time.perf_counter()
    os.environ.update(
        NUMBA_CPU_NAME=options.cpu, NUMBA_CPU_FEATURES=FEATURES.get(options.cpu, ""), DETMAP_KERNELS="jit"
    )
    from detmap.cli import compiling

    _, tasks, costs = compiling.compile_all(options.cpu)
    print(f"{len(tasks)} kernels, {len(costs)} of them compiled now, {time.perf_counter() - started:.0f} s", flush=True)
    kernels = [_load(task) for task in sorted(tasks)]
    for target in options.target:
        print(build(TARGETS[target], options.cpu, kernels, options.linker, Path(options.out)), flush=True)
    print(f"{time.perf_counter() - started:.0f} s")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/build-kernels", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--cpu", default="x86-64-v2", help="as LLVM names it; the object's name ends in what follows the last -"
    )
    parser.add_argument("--target", choices=TARGETS, nargs="+", default=["linux-x86_64"])
    parser.add_argument("--linker", choices=("zig", "gcc"), help="default: zig if the package ziglang is installed")
    parser.add_argument(
        "--out", default=str(ROOT / "detmap" / "kernels" / "ahead"), help="folder, default: in the package"
    )
    options = parser.parse_args()
    options.linker = options.linker or ("zig" if importlib.util.find_spec("ziglang") else "gcc")
    return options


def build(target: Target, cpu: str, kernels: list[Compiled], linker: str, out: Path) -> Path:
    """Link an object, and write it with its description; return its path."""
    from detmap.kernels import _ahead

    labels = [kernel.label for kernel in kernels]
    assert len(set(labels)) == len(labels), "a kernel is called with more than one combination of types"
    with tempfile.TemporaryDirectory() as work:
        files = [str(_emitted(number, kernel, target, cpu, Path(work))) for number, kernel in enumerate(kernels)]
        table = Path(work, "table.c")
        table.write_text(_table(kernels))
        level = cpu.rpartition("-")[2]
        made = Path(work, f"{target.name}-{level}{target.suffix}")
        flags = (
            f"-DDETMAP_INTERFACE={_ahead.interface()}",
            "-O2",
            "-fPIC",
            "-fno-sanitize=all",
            "-fvisibility=hidden",
            "-Wall",
            "-shared",
            f"-I{HERE}",
        )
        sources = (str(table), str(HERE / "runtime.c"), *files)
        words = [*_compiler(linker, target), *flags, "-o", str(made), *sources, *target.flags]
        subprocess.run(words, check=True)
        content = made.read_bytes()
        out.mkdir(parents=True, exist_ok=True)
        path = out / made.name
        path.with_suffix(".txt").unlink(missing_ok=True)  # of the object before
        _replace(path, content)
        _replace(path.with_suffix(".txt"), "\n".join(_description(content, target, cpu, linker)).encode() + b"\n")
    return path


def _replace(path: Path, content: bytes) -> None:
    """Write a file anew: a process that has mapped the old one keeps it."""
    passing = path.with_name(f"{path.name}.tmp")
    passing.write_bytes(content)
    os.replace(passing, path)


def _description(content: bytes, target: Target, cpu: str, linker: str) -> list[str]:
    import llvmlite
    import numba
    from llvmlite import binding

    from detmap.kernels import _ahead, _numba

    llvm = ".".join(map(str, binding.llvm_version_info))
    return [
        *_ahead.describe(_numba._HOME, len(content), zlib.crc32(content)),
        f"target {target.zig if linker == 'zig' else target.triple}",
        f"processor {cpu}{FEATURES.get(cpu, '')}",
        f"numba {numba.__version__}",
        f"llvmlite {llvmlite.__version__} with LLVM {llvm}",
    ]


def _compiler(linker: str, target: Target) -> list[str]:
    if linker == "zig":
        return [sys.executable, "-m", "ziglang", "cc", "-target", target.zig]
    return shlex.split(os.environ.get("CC", "")) or [shutil.which("gcc") or "cc"]


def _load(task: Any) -> Compiled:
    """Return a kernel that was compiled into the cache."""
    module, name, types = task
    function = getattr(importlib.import_module(module), name)
    function.compile(types)
    (signature,) = function.overloads
    found = function.overloads[signature]
    library = found.library._get_module_for_linking()
    label = f"{module.rpartition('.')[2]}.{name}"
    assert len(types) == function.py_func.__code__.co_argcount, f"{label} is called without some of its arguments"
    return Compiled(label, found.signature, found.fndesc.llvm_func_name, library)


def _emitted(number: int, kernel: Compiled, target: Target, cpu: str, work: Path) -> Path:
    """Write the machine code of a kernel and what calls it with an array of slots, and return the file."""
    from llvmlite import binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(target.triple).create_target_machine(
        cpu=cpu, features=FEATURES.get(cpu, ""), opt=3, reloc="pic", codemodel="default"
    )
    module = kernel.module.clone()
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    for one in (*module.functions, *module.global_variables):
        if not one.is_declaration:
            one.linkage = "external" if one.name == kernel.entry else "internal"
    types = [str(argument.type) for argument in module.get_function(kernel.entry).arguments]
    module.link_in(binding.parse_assembly(_caller(number, kernel.entry, types)))
    module.get_function(kernel.entry).linkage = "internal"
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()  # what calls the kernel from Python
    passes.run(module, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(0)))
    module.verify()
    path = work / f"{number}.o"
    path.write_bytes(machine.emit_object(module))
    return path


def _caller(number: int, entry: str, types: list[str]) -> str:
    """Return LLVM code that takes the arguments of a kernel from slots of 8 bytes; the first two are the result's."""
    lines = [f'declare i32 @"{entry}"({", ".join(types)})']
    lines += [f"define hidden i32 @detmap_kernel_{number}(ptr %slots, ptr %result, ptr %raised) {{"]
    given = [f"{types[0]} %result", f"{types[1]} %raised"]
    for place, one in enumerate(types[2:]):
        lines += [
            f"  %p{place} = getelementptr i64, ptr %slots, i64 {place}",
            f"  %v{place} = load {one}, ptr %p{place}",
        ]
        given.append(f"{one} %v{place}")
    return "\n".join([*lines, f'  %status = call i32 @"{entry}"({", ".join(given)})', "  ret i32 %status", "}"])


def _table(kernels: list[Compiled]) -> str:
    """Return C code with the labels, types and entries of all kernels."""
    lines, rows = ['#include "runtime.h"', "#include <stddef.h>"], []
    for number, kernel in enumerate(kernels):
        types: list[str] = []
        classes: list[str] = []
        for one in kernel.signature.args:
            _describe(one, types, classes)
        (result,) = _result(kernel.signature.return_type)
        arrays = [int(one.split(", ")[3]) for one in types if one.startswith("{ARRAY")]
        slots = sum(5 + 2 * dimensions for dimensions in arrays) + sum(one.startswith("{SCALAR") for one in types)
        assert len(arrays) <= 64, f"{kernel.label}: more than MOST_BUFFERS arrays"
        assert slots <= 512, f"{kernel.label}: more than MOST_SLOTS slots"
        assert len(classes) <= 16, f"{kernel.label}: more than MOST_CLASSES named tuples"
        lines.append(f"entry detmap_kernel_{number};")
        lines.append(f"static const type types_{number}[] = {{{', '.join(types)}}};")
        row = f'"{kernel.label}", "{" ".join(classes)}", types_{number}, {len(kernel.signature.args)}, {result}'
        rows.append(f"    {{{row}, detmap_kernel_{number}}},")
    lines += ["const kernel detmap_table[] = {", *rows, "};", f"const int detmap_table_size = {len(rows)};", ""]
    return "\n".join(lines)


def _describe(one: Any, types: list[str], classes: list[str]) -> None:
    """Append a type and those of its fields, and the classes of named tuples among them."""
    from numba import types as numba_types

    if isinstance(one, numba_types.BaseTuple):
        made = one.instance_class
        assert getattr(sys.modules[made.__module__], made.__name__) is made
        classes.append(f"{made.__module__}:{made.__name__}")
        types.append(f"{{TUPLE, 0, 0, 0, 0, {len(one.types)}}}")
        for field in one.types:
            _describe(field, types, classes)
    elif isinstance(one, numba_types.Buffer):
        assert one.layout == "C", one
        assert one.aligned, one
        kind, size = _scalar(one.dtype)
        types.append(f"{{ARRAY, '{kind}', {size}, {one.ndim}, {int(one.mutable)}, 0}}")
    else:
        kind, size = _scalar(one)
        assert size == 8 or kind == "b", f"{one}: numbers of arguments have 64 bits"
        types.append(f"{{SCALAR, '{kind}', {size}, 0, 0, 0}}")


def _result(one: Any) -> list[str]:
    from numba import types as numba_types

    if isinstance(one, numba_types.NoneType):
        return ["{SCALAR, 0, 0, 0, 0, 0}"]
    assert not isinstance(one, numba_types.Buffer), f"{one}: what is returned is a number; arrays are written to"
    types: list[str] = []
    _describe(one, types, [])
    return types


def _scalar(one: Any) -> tuple[str, int]:
    from numba import types as numba_types

    if isinstance(one, numba_types.Boolean):
        return "b", 1
    if isinstance(one, numba_types.Float):
        return "f", one.bitwidth // 8
    assert isinstance(one, numba_types.Integer), one
    return "i" if one.signed else "u", one.bitwidth // 8


if __name__ == "__main__":
    main()
