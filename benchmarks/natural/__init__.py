"""Questions in natural wording over knowledge bases of their own, each beside simple rules.

| Module | Has |
|---|---|
| `published` | corpora and questions as published, and the split of the experts |
| `questions` | the sets: plain questions by other hands, K-QA, MedicationQA, COVID-QA, and more |
| `bases` | the knowledge base that each set is asked of |
| `rules` | the opponents: the cosine's best sentence, BM25's first passage |
| `asking` | every question asked in each way, into a log that a stopped run goes on from |
| `fitting` | the probabilities of the gate, fitted on the dev half |
| `tables` | right, first right, refused, sureness, with intervals and paired differences |
"""
