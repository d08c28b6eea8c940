"""KAG-Thinker: a question decomposed into logical forms, each solved in depth (the second paper).

`solver.Thinker` runs the method (§3): breadth decomposition, depth solving of each step, output.

| Section | Module |
|---|---|
| §3.1.1 logical forms and their notation | `logical_forms`, `notation`, `grammar` |
| §3.1.1 breadth decomposition | `planner`; `parse` and `reader` |
| §3.1.1 dependencies of steps | `dependencies` |
| §3.1.2 depth solving | `depth`; its boxed answers in `boxed` |
| §3.2 knowledge boundary | `boundary`; tau is fitted by `calibration` |
| §3.3 focusing and reasoning | `focus` |
| §3.4 Retrieval over a graph | `hybrid` |
| §3.4 Math and Deduce | `executors`, with verified `formulas` and the `sandbox` |
| §3.4 Output | `output` |
"""
