"""Writes the vectors in this folder: a small feed-forward language model in torch, its logits and its gradient norms.

Run as `python make.py` in this folder; the versions used are written to expected.json.
"""

import json
import platform

import torch
from safetensors.torch import save_file

VOCABULARY, D, HISTORY, HIDDEN, CONTEXT = 31, 5, 4, [12, 9, 6], 10


class FeedForwardLM(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, D)
        widths = [HISTORY * D, *HIDDEN]
        self.hidden = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.output = torch.nn.Linear(HIDDEN[-1], VOCABULARY)

    def forward(self, ids):
        vectors = torch.nn.functional.pad(self.embedding(ids), (0, 0, HISTORY - 1, 0))
        stream = torch.cat([vectors[:, at : at + ids.shape[1]] for at in range(HISTORY)], dim=-1)
        for layer in self.hidden:
            stream = torch.relu(layer(stream))
        return self.output(stream)


torch.manual_seed(20240609)
model = FeedForwardLM()
save_file(model.state_dict(), "model.safetensors", metadata={"format": "pt"})
double = FeedForwardLM().double()
double.load_state_dict(model.state_dict())
examples = []
for tokens in [[5, 17, 17, 30, 0, 3, 12, 8, 9, 11], [1, 2], [7, 7, 7, 7, 7, 7]]:
    ids = torch.tensor([tokens])
    double.zero_grad()
    loss = torch.nn.functional.cross_entropy(double(ids)[0, :-1], ids[0, 1:])
    loss.backward()
    norm = torch.sqrt(sum((p.grad**2).sum() for p in double.parameters())).item()
    logits = [[round(x, 6) for x in row] for row in model(ids)[0].tolist()]
    examples.append({"tokens": tokens, "logits": logits, "mean_nll": loss.item(), "gradient_norm": norm})
config = {"model_type": "feed_forward_lm", "architectures": ["FeedForwardLM"], "vocab_size": VOCABULARY,
          "max_position_embeddings": CONTEXT, "hidden_size": D, "history": HISTORY, "hidden_sizes": HIDDEN,
          "hidden_act": "relu", "tie_word_embeddings": False, "torch_dtype": "float32"}
with open("config.json", "w", encoding="utf-8") as file:
    json.dump(config, file, indent=2)
with open("expected.json", "w", encoding="utf-8") as file:
    json.dump({"oracle": f"torch {torch.__version__}, python {platform.python_version()}",
               "dtype": "logits in float32, mean_nll and gradient_norm in float64", "examples": examples}, file)
