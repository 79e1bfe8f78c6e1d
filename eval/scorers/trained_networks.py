"""Scorers of Hugging Face architectures that pairscale trained: those of pretrained models, with our tokenizers."""

from corpora.fast_tokenizers import fast_tokenizer
from eval.scorers.base import Execution
from eval.scorers.causal import CausalScorer
from eval.scorers.hub import HubModel, HubScorer
from eval.scorers.masked import MaskedScorer
from train.models.huggingface import HuggingFaceModel
from train.models.huggingface_config import HuggingFaceConfig
from train.runs.export import LoadedModel


def network_scorer(loaded: LoadedModel, config: HuggingFaceConfig, name: str, execution: Execution) -> HubScorer:
    """Return the scorer of a run. Raises what CausalScorer and MaskedScorer raise."""
    assert isinstance(loaded.model, HuggingFaceModel)
    hub = HubModel(loaded.model.network, fast_tokenizer(loaded.tokenizer, config.masked), name, trained_here=True)
    scorer: HubScorer
    if config.masked:
        scorer = MaskedScorer(hub, execution)
        scorer.shift = config.shift  # known, so that it need not be probed
    else:
        scorer = CausalScorer(hub, execution)
        scorer.word_level = loaded.tokenizer.word_level
    scorer.digest, scorer.tokenizer_digest = loaded.digest, loaded.tokenizer_digest  # as in the run's folder
    scorer.sample_words = loaded.info.get("sample_words")
    return scorer
