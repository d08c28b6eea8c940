"""Finds what identifies a person in a clinical text, by rules, and takes it out.

| Module | Holds |
|---|---|
| `found` | the spans, and how overlapping ones are settled |
| `english`, `chinese` | the rules of one language; those of both are in `removal` |
| `words` | the words of other texts, and lists of names, by which a name is told apart |
| `english_names`, `chinese` | names by the word itself and what stands on both sides |
| `removal` | the text without them: marks in their place, dates moved |

What the rules find and miss: docs/guide/security.md.
"""
