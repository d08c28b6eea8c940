"""TC-RAG: a language model controlled by a memory stack and a state value (the first paper).

`machine.TuringMachine` is Algorithm 1, with its line numbers in the margin; `parts` has what it is
made of.

| Section | Module |
|---|---|
| §3, §5.1 memory stack | `stack` |
| §5.1 actions and their wire form (App. 8.4), and that of the authors' program | `actions` |
| App. 8.4 the prompt, and the stack as a conversation | `parts` |
| §5.2 state value: cppl and uct, and sureness | `monitor` |
| §6.3 ablations of actions, and guided moves | `moves` |
| App. 8.5 tools | `tools`, described in `tools.toml` |

The construction of §4, which shows the system to be Turing complete, is executable too:
`tests/support/turing.py`.
"""
