"""Values in YAML: one file a command, and one folder a group of choices.

recipe/ holds what a training uses (optimiser, learning rate, batch, budget; those of the papers in adam_cosine.yaml
and sgd_plateau.yaml), model/ the sizes of architectures, corpus/, tokenizer/ and sample/ the text, benchmark/,
template/ and method/ the scoring, experiment/ whole studies, logger/ and hydra/ tracking and launchers. No program:
each room's schema checks its part.
"""
