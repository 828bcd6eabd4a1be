#!/bin/sh
# Puts the partitions beside this script into the log directories of a stopped broker of another cluster.
#
#   sh put.sh [--check] LOG_DIR...      LOG_DIR...: every directory of the broker's log.dirs
#
# Everything is checked before anything is changed; --check ends there. Only partitions without records are
# replaced, by copies. If it is interrupted, run it again before the broker starts.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
checkpoints="recovery-point-offset-checkpoint replication-offset-checkpoint log-start-offset-checkpoint
cleaner-offset-checkpoint"

refuse() {
    echo "put.sh: $1" >&2
    exit 1
}

# The value of a property in a file.
property() {
    tr -d '\r' <"$1" | sed -n "s/^$2[=:] *//p"
}

check_log_dir() {
    [ -f "$1/meta.properties" ] || refuse "$1: no meta.properties: this is no log directory of a broker"
    for name in cluster.id node.id; do
        expected=$(property "$here/meta.properties" $name)
        found=$(property "$1/meta.properties" $name)
        [ "$found" = "$expected" ] || refuse "$1: $name is $found, but these partitions are for $expected"
    done
    [ -f "$1/.kafka_cleanshutdown" ] ||
        refuse "$1: no .kafka_cleanshutdown: the broker is running, or was killed: start it, and stop it cleanly"
}

# The log directory that has a partition, or the copy of an interrupted run.
log_dir_of() {
    partition=$1
    shift
    for log_dir in "$@"; do
        if [ -d "$log_dir/$partition" ] || [ -d "$log_dir/$partition.put" ]; then
            printf '%s\n' "$log_dir"
            return
        fi
    done
}

is_put() {
    diff -r "$here/$1" "$2/$1" >/dev/null 2>&1
}

check_partition() {
    partition=$1
    shift
    log_dir=$(log_dir_of "$partition" "$@")
    [ -n "$log_dir" ] ||
        refuse "$partition is in none of $*: give all of log.dirs; if it was reassigned since, restore again"
    # Between the removal of the empty directory and the rename of the copy, only the copy is there.
    if [ ! -d "$log_dir/$partition" ] || is_put "$partition" "$log_dir"; then
        return
    fi
    expected=$(property "$here/$partition/partition.metadata" topic_id)
    found=$(property "$log_dir/$partition/partition.metadata" topic_id)
    [ "$found" = "$expected" ] ||
        refuse "$log_dir/$partition: topic_id is $found, not $expected: it was created again: restore again"
    [ -z "$(find "$log_dir/$partition" -name '*.log' -size +0c)" ] ||
        refuse "$log_dir/$partition has records: only empty partitions are replaced"
}

put_partition() {
    partition=$1
    shift
    log_dir=$(log_dir_of "$partition" "$@")
    if is_put "$partition" "$log_dir"; then
        return
    fi
    if [ -d "$log_dir/$partition" ]; then
        rm -rf "$log_dir/$partition.put"
        cp -pR "$here/$partition" "$log_dir/$partition.put"
        sync
        rm -rf "$log_dir/$partition"
    fi
    mv "$log_dir/$partition.put" "$log_dir/$partition"
}

# The lines of our checkpoint take the place of those of the same partitions in a log directory.
put_checkpoint() {
    ours=$here/$1 theirs=$2/$1
    [ -f "$ours" ] || return 0
    {
        if [ -f "$theirs" ]; then tail -n +3 "$theirs"; fi
        tail -n +3 "$ours" | while read -r topic partition offset; do
            if [ -d "$2/$topic-$partition" ]; then printf '%s\n' "$topic $partition $offset"; fi
        done
    } | awk '{ offsets[$1 " " $2] = $3; count += !(($1 " " $2) in seen); seen[$1 " " $2] = 1 }
        END { print 0; print count + 0; for (one in offsets) print one, offsets[one] }' >"$theirs.put"
    mv "$theirs.put" "$theirs"
}

only_check=
if [ "${1:-}" = --check ]; then
    only_check=1
    shift
fi
[ $# -gt 0 ] || refuse "expected the directories of the broker's log.dirs"
for log_dir in "$@"; do check_log_dir "$log_dir"; done
for directory in "$here"/*-*/ "$here"/.*-[0-9]*/; do
    if [ -d "$directory" ]; then check_partition "$(basename "$directory")" "$@"; fi
done
if [ -n "$only_check" ]; then
    echo "all is as expected: nothing was changed"
    exit
fi
for directory in "$here"/*-*/ "$here"/.*-[0-9]*/; do
    if [ -d "$directory" ]; then put_partition "$(basename "$directory")" "$@"; fi
done
for log_dir in "$@"; do
    for name in $checkpoints; do put_checkpoint "$name" "$log_dir"; done
done
sync
echo "done: start the broker when this is done on all of them"
