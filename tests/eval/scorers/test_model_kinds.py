"""Scores of the kinds of models that people score, against a loop over one unpadded text at a time."""

import pytest

from pairscale.errors import PairscaleError
from tests.support.model_kinds import INEXACT, REFUSED, worst_difference

CAUSAL = """
    biogpt bloom codegen cohere cohere2 ctrl falcon gemma gemma2 gemma3_text glm gpt2 gpt_neo gpt_neox gptj granite
    llama mamba minicpm3 mistral mixtral mpt olmo2 opt phi phi3 prophetnet qwen2 qwen3 roberta rwkv stablelm xglm xlnet
"""
MASKED = """
    albert bert big_bird convbert data2vec-text deberta deberta-v2 distilbert electra esm fnet funnel mobilebert
    modernbert mpnet rembert roberta roformer xlm xlm-roberta
"""
KINDS = [("causal", kind) for kind in CAUSAL.split()] + [("masked", kind) for kind in MASKED.split()]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of transformers about its own kinds
@pytest.mark.parametrize(("task", "kind"), KINDS)
def test_scores_of_a_kind_equal_its_own_logits(task, kind):
    if (task, kind) in REFUSED:
        with pytest.raises(PairscaleError, match=REFUSED[task, kind]):
            worst_difference(kind, task)
        return
    assert worst_difference(kind, task) < INEXACT.get(kind, 2e-5)  # nats per token
