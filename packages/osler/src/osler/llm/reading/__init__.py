"""One tolerant reader of what models write, for every method.

| Module | Reads |
|---|---|
| `actions` | the actions of a reply, several in order, and tool calls in every notation |
| `answers` | the words of an answer, citation marks in every style, tags in any dress |
| `json_replies` | JSON anywhere in a reply, with comments, trailing commas, single quotes; lists |
| `refusals` | what says that nothing is known, in English and Chinese |
| `verdicts` | yes and no, true and false, letters and numbers of documents |
| `steps` | plans in every layout |

Nothing here raises on any text. The papers' own dialects are strict and stay with their methods.
"""
