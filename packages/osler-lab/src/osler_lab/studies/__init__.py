"""What is measured of a configured system.

| Module | Does |
|---|---|
| `evaluation`, `tasks` | tries strategies on data sets that no model in use was trained on |
| `stored_plans`, `plans` | plans made once and read by any reader; what a source is worth |
| `sensitivity` | TC-RAG's sigma (§6.5), and noise in its first tool call (App. 8.6) |
| `poisoning`, `injections` | wrong passages and hidden orders, through the whole pipeline |
| `calibrate`, `calibrate_sigma`, `calibrate_sureness` | thresholds fitted to a model or answers |
"""
