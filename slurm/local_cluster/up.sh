#!/usr/bin/env bash
# Start a real SLURM on this machine, for tests and experiments. It has munge, one controller and emulated nodes, but no
# systemd, cgroups or accounting. It needs root and Debian's slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins and
# munge (`make system`).
#
#   eval "$(slurm/local_cluster/up.sh [FOLDER])"     start it (or find it running) and set SLURM_CONF and PATH
#   slurm/local_cluster/down.sh [FOLDER]             stop the SLURM of FOLDER, and nothing else
#
# FOLDER contains keys, state, logs and process ids. Standard output is for eval; messages go to standard error.
# Environment: NODES (4); CPUS (2) and MEMORY (8000 MB) per node; PORT (17817), the first of NODES + 1 ports; MAX_ARRAY
# (1001), the tasks per array. Each node has a fake GPU, to try --gpus-per-node=1. Runs find no real one, and use the CPU.
#
# Partitions: high, and low (the default). Jobs in low are requeued if jobs in high need their nodes, GRACE=10 seconds after
# a warning.
set -euo pipefail

folder=$(realpath -m "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/pairscale/slurm}")
nodes=${NODES:-4} cpus=${CPUS:-2} memory=${MEMORY:-8000} port=${PORT:-17817} grace=${GRACE:-10}
here=$(dirname "$(realpath "$0")")
say() { echo "$*" >&2; }

for program in munged slurmctld slurmd scontrol; do
  PATH="$PATH:/usr/sbin" command -v "$program" >/dev/null || { say "up.sh: $program is missing. Install it with \`make system\`."; exit 3; }
done
[ "$(id -u)" -eq 0 ] || { say "up.sh: run this as root, because slurmd starts jobs as their users."; exit 3; }
export PATH="$PATH:/usr/sbin" SLURM_CONF="$folder/slurm.conf"

settings() { echo "export SLURM_CONF='$folder/slurm.conf'"; }
answers() { scontrol ping 2>/dev/null | grep -q "is UP"; }

mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9 # so that several callers start it only once
if [ -f "$SLURM_CONF" ] && answers; then
  say "SLURM is already running in $folder."
  settings
  exit
fi
"$here/down.sh" "$folder" # removes what is left of one that died

# The folders with the sockets of munge and slurmd must not be writable by others.
mkdir -p "$folder"/{munge,state,spool,log,run}
chmod 0700 "$folder/munge"
chmod 0755 "$folder/run"
[ -f "$folder/munge/key" ] || dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 status=none
chmod 0400 "$folder/munge/key"
host=$(hostname -s)

cat >"$SLURM_CONF" <<CONF
ClusterName=pairscale
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
# The default, 120 seconds, would delay each requeue by this long.
AuthInfo=socket=$folder/run/munge.socket,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd-%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
GresTypes=gpu
MaxArraySize=${MAX_ARRAY:-1001}
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=$((memory / cpus))
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
ReturnToService=2
KillWait=5
MinJobAge=86400
SlurmctldTimeout=10
SlurmdTimeout=10
InactiveLimit=0
BatchStartTimeout=10
MessageTimeout=20
SchedulerParameters=bf_interval=2,sched_min_interval=1000000
CONF
echo "Name=gpu File=/dev/null" >"$folder/gres.conf"
names=$(seq -f "n%g" 1 "$nodes")
for name in $names; do
  echo "NodeName=$name NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + ${name#n})) CPUs=$cpus RealMemory=$memory" \
    "Gres=gpu:1 State=UNKNOWN"
done >>"$SLURM_CONF"
cat >>"$SLURM_CONF" <<CONF
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=$grace
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
CONF

# The lock must not stay open in the daemons.
munged --force --key-file="$folder/munge/key" --socket="$folder/run/munge.socket" --pid-file="$folder/run/munged.pid" \
  --log-file="$folder/log/munged.log" --seed-file="$folder/munge/seed" --num-threads=2 9>&-
slurmctld -c 9>&-
for name in $names; do slurmd -N "$name" 9>&-; done

for _ in $(seq 100); do
  if answers && [ "$(sinfo --noheader --Node --partition=low --states=idle --format=%N | wc -l)" -eq "$nodes" ]; then
    say "SLURM is running in $folder: $nodes nodes with $cpus CPUs each, partitions low (preempted) and high."
    settings
    exit
  fi
  sleep 0.1
done
say "up.sh: SLURM did not start within 10 seconds. See its logs in $folder/log."
tail -n 5 "$folder"/log/*.log >&2
exit 1
