"""Files that go into an export as they are: they need torch, transformers and tokenizers, and nothing of pairscale."""
