#!/usr/bin/env bash
# Stop the SLURM that up.sh started in FOLDER (the same default), its jobs with it, and nothing else. FOLDER stays.
set -euo pipefail

folder=$(realpath -m "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/pairscale/slurm}")

# Daemons and processes of jobs have this cluster's SLURM_CONF in their environment, unlike another SLURM of the machine
# or a process that reuses the id of a dead one.
environment() { { tr '\0' '\n' <"/proc/$1/environ"; } 2>/dev/null; }
ours() { environment "$1" | grep -qxF "SLURM_CONF=$folder/slurm.conf"; }
# A shell that only talks to this cluster has the variable too, and stays.
stops() {
  ours "$1" || return 1
  case $(cat "/proc/$1/comm" 2>/dev/null) in munged | slurm*) return 0 ;; esac
  environment "$1" | grep -q '^SLURM_JOB_ID='
}

# Repeated until none is left, since processes may start while the others are listed.
stopped=
while true; do
  pids=()
  for process in /proc/[0-9]*; do
    if stops "${process#/proc/}"; then pids+=("${process#/proc/}"); fi
  done
  if [ ${#pids[@]} -eq 0 ]; then break; fi
  stopped=yes
  kill -9 "${pids[@]}" 2>/dev/null || true # some end with others
  for pid in "${pids[@]}"; do
    while ours "$pid"; do sleep 0.05; done
  done
done
if [ -z "$stopped" ]; then exit; fi
rm -f "$folder"/run/*
echo "stopped the SLURM in $folder" >&2
