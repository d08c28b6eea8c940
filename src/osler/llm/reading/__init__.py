"""One tolerant reader of what models write, for every method.

| Module | Reads |
|---|---|
| `tags` | Thought, Tool_Use, Conclusion … in any dress, in English and Chinese |
| `actions` | the actions of a reply, several in order, and tool calls in every notation |
| `thinking` | thinking wherever it stands, and replies that are nothing but cut thinking |
| `marks` | citation marks in every style, as numbers and places |
| `debris` | words that are about the reply itself: labels, fences, courtesies |

Nothing here raises on any text. The papers' own dialects are strict and stay with their methods.
"""
