"""Training data of KAG-Thinker: a teacher's trajectories, filtered and inspected (App. 9, 10).

| Module | Has |
|---|---|
| `teacher` | a teacher solves a question as the solver of `methods.kag` does |
| `script` | the record of a run: every prompt with its reply, and the decisions |
| `boundary` | labels of the knowledge boundary for medical data (§5.1) |
| `trajectory` | the run, step by step, out of its script |
| `filters` | reasons for which a trajectory is no sample |
| `dialogue` | trajectories as chats in the paper's format (App. 12) |
| `rounds` | the job: teach, filter, try again with another seed |
| `log` | the shared log of tries, and the estimate of what is left |
| `export` | kept tries as a data set with its card |
| `quality` | the data evaluation framework: six dimensions with their aspects (App. 10) |
| `chat` | a sample's chat read back into its parts |
| `rules` | quality rules that need no model |
| `inspector` | a model as judge of quality, and runs over whole data sets |
| `tables` | a judge against people: Tables 12 and 13 |

The three stages of App. 9 differ in what they keep of a trajectory:

| Stage | A sample is |
|---|---|
| logical-form | the plan alone |
| deep-search | a single-hop question: search after search until the answer |
| thinker | the whole: plan, boundary, searches, calculations, final answer |

    questions -> teacher -> script -> trajectory -> filters -> judge -> inspector -> log
                    ^                                                                 |
                    +---------------- dropped: next round, another seed --------------+

Commands: `osler train thinker-data` teaches and writes the data set, `evaluate-data` judges one
(its own or another's), and `osler train thinker` trains on it.

Prompts, plans and searches of the samples are the solver's own strings: a model is trained on
exactly what it will be asked.

What is dropped in every round stays in the log with its reason, so that a later teacher may try
it; what a paper calls "inference with the fine-tuned model" is the same command with that model.
"""
