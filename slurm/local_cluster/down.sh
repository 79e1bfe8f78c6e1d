#!/usr/bin/env bash
# Stop the SLURM that up.sh started in FOLDER (same default) and its jobs, and nothing else. FOLDER is kept.
set -euo pipefail

folder=$(realpath -m "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/pairscale/slurm}")

# Daemons and jobs have this cluster's SLURM_CONF in their environment. Another SLURM on this machine, or a process that
# reuses the id of a dead one, does not.
environment() { { tr '\0' '\n' <"/proc/$1/environ"; } 2>/dev/null; }
ours() { environment "$1" | grep -qxF "SLURM_CONF=$folder/slurm.conf"; }
# A shell that only uses this cluster has the variable, too, but is not stopped.
stops() {
  ours "$1" || return 1
  case $(cat "/proc/$1/comm" 2>/dev/null) in munged | slurm*) return 0 ;; esac
  environment "$1" | grep -q '^SLURM_JOB_ID='
}

# Repeat until none is left, because processes may start while the others are listed.
stopped=
while true; do
  pids=()
  for process in /proc/[0-9]*; do
    if stops "${process#/proc/}"; then pids+=("${process#/proc/}"); fi
  done
  if [ ${#pids[@]} -eq 0 ]; then break; fi
  stopped=yes
  kill -9 "${pids[@]}" 2>/dev/null || true # some end along with others
  for pid in "${pids[@]}"; do
    while ours "$pid"; do sleep 0.05; done
  done
done
if [ -z "$stopped" ]; then exit; fi
rm -f "$folder"/run/*
echo "Stopped the SLURM in $folder." >&2
