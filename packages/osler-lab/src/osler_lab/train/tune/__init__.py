"""Tuning of weights: supervised, by preferences, continued pre-training (extra `train`).

| Module | Has |
|---|---|
| `recipe` | the papers' hyper-parameters |
| `encode` | data as tokens, and which of them are learnt |
| `loss` | log-probabilities over a shared prefix; the SFT and DPO losses; perplexity |
| `objective` | the two losses as the loop asks for them, and DPO's reference |
| `corpus` | texts for continued pre-training: where they come from, which are held out |
| `pack` | texts as windows, mixed by weights |
| `model` | a model made ready to be trained: LoRA, precision, threads |
| `loop` | the training itself: steps, logs, progress |
| `checkpoints` | what a killed run leaves, and whether it is whole |
| `estimate` | steps, memory and time, before they are spent |
| `jobs` | SFT, DPO, thinker and pre-training from files to files |
| `export` | merged weights, and GGUF for the embedded engine |
| `card` | the model card |
"""
