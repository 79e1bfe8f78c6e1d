# Makes old_runs.tar.xz: in an empty folder, with a checkout of c7fa46c on PYTHONPATH.
set -eu
COMMON="trainer.progress=false trainer.threads=1 trainer.accelerator=cpu paths.runs=runs paths.store=store"
TRAIN="$COMMON corpus=toy corpus.words=12000 corpus.split.valid=0.05 corpus.split.test=0.05 tokenizer=word tokenizer.vocab_size=200 recipe.validation_words=300"
LSTM="$TRAIN recipe.budget.epochs=3 recipe.batch=8 recipe.bptt=20 recipe.checkpoint_every=1k model=lstm_tiny model.embedding=8 model.hidden=8"
TXL="$TRAIN recipe.budget.epochs=1 recipe.batch=8 recipe.bptt=20 model=txl_tiny model.layers=1 model.d_model=8 model.heads=2 model.d_head=4 model.d_inner=16 model.memory=16"
python -m train $LSTM study=old sample.size=1k
python -m train $LSTM study=old sample.size=2k 'trainer.snapshots=[1k]'
python -m train $TXL study=old sample.size=2k
python -m train $TRAIN study=old sample.size=2k model=ngram model.order=3
python -m train $LSTM study=interrupted sample.size=2k 'trainer.snapshots=[1k]' &
until compgen -G 'runs/interrupted/*/checkpoints/*.ckpt' >/dev/null; do sleep 0.002; done
kill -KILL $!
wait $! || true
python -m eval $COMMON study=old benchmark=toy 'benchmark.paradigms=[anaphor_gender_agreement,principle_A_c_command,principle_A_domain_2,distractor_agreement_relational_noun]' benchmark.per_paradigm=12 scoring.token_pairs=2 'method=[lp,one_prefix]' scoring.snapshots=true
python -m analysis study=old paths.runs=runs paths.reports=reports
mkdir tables && mv reports/old/*-slopes.csv reports/old/*-accuracies.csv tables
tar --sort=name --owner=0 --group=0 -cJf old_runs.tar.xz runs store tables
