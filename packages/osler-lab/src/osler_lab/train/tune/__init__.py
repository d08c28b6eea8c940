"""Tuning of weights: supervised, by preferences, continued pre-training (extra `train`).

| Module | Has |
|---|---|
| `recipe` | the papers' hyper-parameters |
| `encode` | data as tokens, and which of them are learnt; texts as windows, mixed by weights |
| `loss` | log-probabilities over a shared prefix; the SFT and DPO losses; perplexity |
| `corpus` | texts for continued pre-training: where they come from, which are held out |
| `model` | a model made ready to be trained: LoRA, precision, threads |
| `loop` | the training itself: steps, logs, progress, checkpoints and whether they are whole |
| `jobs` | SFT, DPO, thinker and pre-training from files to files; the model's card |
| `export` | merged weights, and GGUF of a model or an adapter for the embedded engine |
"""
