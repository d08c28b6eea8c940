"""Checks a proof of `osler audit RUN` with nothing but `cryptography`.

python 06_verify_an_audit_proof.py proof.json PUBLIC_KEY_IN_HEX
"""

import hashlib
import json
import sys
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

proof = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
head, entry = proof["checkpoint"], json.loads(proof["entry"])
index, last = proof["index"], head["size"] - 1
node = hashlib.sha256(b"\0" + proof["entry"].encode()).digest()
for sibling in map(bytes.fromhex, proof["path"]):  # RFC 9162, 2.1.3.2
    if index % 2 or index == last:
        node = hashlib.sha256(b"\1" + sibling + node).digest()
        while index % 2 == 0 and index:
            index, last = index // 2, last // 2
    else:
        node = hashlib.sha256(b"\1" + node + sibling).digest()
    index, last = index // 2, last // 2
assert (last, node.hex()) == (0, head["root"]), "the entry is not in the signed tree"
signed = "osler audit 1\n{size}\n{root}\n{at}\n".format(**head).encode()
key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(sys.argv[2]))
key.verify(bytes.fromhex(head["signature"]), signed)  # raises InvalidSignature
for name, text in proof["files"].items():
    assert hashlib.sha256(text.encode()).hexdigest() == entry[name], f"{name} was changed"
answered = json.loads(proof["files"]["events"].strip().split("\n")[-1])["solution"]["answer"]
assert answered == proof["answer"], "the answer is not the recorded one"
print(f"entry {proof['index']} of {head['size']}: run {entry['run']}, {entry['at']}, as recorded")
