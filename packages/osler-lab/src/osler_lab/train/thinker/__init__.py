"""Training data of KAG-Thinker: a teacher's trajectories, filtered and inspected (App. 9, 10).

| Module | Has |
|---|---|
| `teacher` | solves a question as the solver of `methods.kag` does; boundary labels (§5.1) |
| `trajectory` | the run with its prompts and replies, step by step |
| `dialogue` | reasons against a trajectory; the rest as chats in the paper's format (App. 12) |
| `rounds` | the job: teach, filter, try again with another seed; the shared log of tries |
| `export` | kept tries as a data set with its card |
| `quality` | the data evaluation framework (App. 10), and a model as its judge |
| `rules` | quality rules that need no model, over a sample's chat |
| `tables` | a judge against people: Tables 12 and 13 |

The three stages of App. 9 differ in what they keep of a trajectory:

| Stage | A sample is |
|---|---|
| logical-form | the plan alone |
| deep-search | a single-hop question: search after search until the answer |
| thinker | the whole: plan, boundary, searches, calculations, final answer |

    questions -> teacher -> trajectory -> filters -> judge -> inspector -> log
                    ^                                                       |
                    +----------- dropped: next round, another seed ---------+

Commands: `osler train thinker-data` teaches and writes the data set, `evaluate-data` judges one
(its own or another's), and `osler train tune thinker` trains on it.

Prompts, plans and searches of the samples are the solver's own strings: a model is trained on
exactly what it will be asked.

What is dropped in every round stays in the log with its reason, so that a later teacher may try
it; what a paper calls "inference with the fine-tuned model" is the same command with that model.
"""
