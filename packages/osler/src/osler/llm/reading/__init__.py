"""One tolerant reader of what models write, for every method.

| Module | Reads |
|---|---|
| `tags` | Thought, Tool_Use, Conclusion … in any dress; words about the reply itself |
| `actions` | the actions of a reply, several in order, and tool calls in every notation |
| `answers` | the words of an answer, and citation marks in every style |
| `json_replies` | JSON anywhere in a reply, with comments, trailing commas, single quotes; lists |
| `refusals` | what says that nothing is known, in English and Chinese |
| `verdicts` | yes and no, true and false, letters and numbers of documents |
| `steps` | plans in every layout |

Nothing here raises on any text. The papers' own dialects are strict and stay with their methods.
"""
