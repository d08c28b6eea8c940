"""Osler's laboratory: methods to compare with, evaluation, training.

| Package | Holds |
|---|---|
| `baselines` | the methods that the papers compare with, on the same models, searches and budget |
| `evaluate`, `natural` | data sets, measures, reports; questions in natural wording |
| `studies` | calibration, sensitivity, robustness; evaluations made from settings |
| `train` | training data, and training |
| `build`, `cli` | training from settings; the verbs that it adds to `osler` |
"""
