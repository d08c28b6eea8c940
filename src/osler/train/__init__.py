"""Training data and training. Gold answers are known here and in `osler.evaluate` alone.

| Package | Makes |
|---|---|
| `journal` | the shared, resumable log of a job over many samples |
| `record` | the records that a trainer reads, as a folder with its card |
| `spo` | Source Planning Optimisation (Omni-RAG §4.2): explore, judge, pairs |
| `thinker` | KAG-Thinker's trajectories, and the framework that evaluates them (App. 9) |
| `recognise` | what finds medical names in texts; needs torch to train and to find |
| `ablations` | the papers' training ablations as data |
| `tune` | SFT, DPO, pre-training with adapters, GGUF files; needs torch (extra `train`) |
"""
