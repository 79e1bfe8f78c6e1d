"""Hydra's launchers of ours; conf.register makes them known to Hydra (values: conf/hydra/launcher/)."""
