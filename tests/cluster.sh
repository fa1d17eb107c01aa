#!/usr/bin/env bash
# Three real Apache Kafka brokers (KRaft, each a controller too), each a host of its own: in a network namespace, with a clock and
# with cables that can be pulled. Needs what tests/kafka.sh needs, cc, ip (iproute2), nsenter and unshare (util-linux), and root or
# user namespaces.
#
#   tests/cluster.sh start         starts it, and prints bootstrap.servers
#   tests/cluster.sh exec COMMAND  runs a command in the network of the brokers; nobody else reaches them
#   tests/cluster.sh kill N        kill -9 of broker N (1 to 3)
#   tests/cluster.sh restart N     starts it again, with the data that it had
#   tests/cluster.sh freeze N      stops its process, as a long pause would
#   tests/cluster.sh thaw N        lets it go on
#   tests/cluster.sh cut N M       nothing passes any more between brokers N and M; clients still reach both
#   tests/cluster.sh heal N M      all passes again
#   tests/cluster.sh clock N S     broker N's clock is S seconds ahead from now on (behind, if negative)
#   tests/cluster.sh data N        prints the folder of its data
#   tests/cluster.sh power off     the power of all brokers fails at once: they die, and what was not synced is lost
#   tests/cluster.sh power on      they start again, with what is left
#   tests/cluster.sh can-lose-power  succeeds where that is possible: it needs root and loop devices
#   tests/cluster.sh stop          stops all, and deletes it
#
# BERNSTREAM_CLUSTER_HOME names the folder for it, BERNSTREAM_CLUSTER_LAG the brokers' replica.lag.time.max.ms (30000, as Kafka has it).
# With BERNSTREAM_CLUSTER_DISKS=1 the data of each broker is on a file system of its own, in an image that only the broker sees, and
# the power can fail.
#
# A failure of power here is real for everything above the disk: each file system is shut down without its log, and what Kafka wrote
# and neither Kafka nor the kernel's own schedule (5 s for names and lengths, 30 s for bytes) has brought to the image is gone. It does
# not imitate the disk: what the image was given stays, as if a disk had no cache, tore no sector and kept the order of its writes.
set -euo pipefail

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${BERNSTREAM_CLUSTER_HOME:-$(dirname "$tests")/target/cluster}
lag=${BERNSTREAM_CLUSTER_LAG:-30000}
net=10.77.0
servers=$net.1:9092,$net.2:9092,$net.3:9092

die() { echo "cluster.sh: $*" >&2; exit 1; }

# Who is not root is root in a user namespace of its own.
if [[ $(id -u) = 0 ]]; then space=(--net) enter=(--net); else space=(--map-root-user --net) enter=(--preserve-credentials --user --net); fi

# A process that does nothing but keep a namespace, and the commands to run in it: of a broker, or of the network between them.
keep() { setsid "$@" sleep infinity > /dev/null 2>&1 < /dev/null & echo $! > "$home/$name/namespace"; }
inside() {
    local -a into=("${enter[@]}")
    if [[ $1 != network ]] && has_disks; then into+=(--mount); fi
    nsenter "${into[@]}" -t "$(cat "$home/$1/namespace")" -- "${@:2}"
}

has_disks() { [[ -f $home/disks ]]; }

# A process id may have been given to somebody else since.
is() { [[ -f $1 ]] && [[ $(ps -ww -o args= -p "$(cat "$1")" 2>/dev/null) == *"$2"* ]]; }
running() { is "$home/$1/pid" "$home/$1/server.properties"; }

# Until the namespace is there: the process is made before it, and is in others until it is nothing but this command.
settled() {
    local id
    id=$(cat "$home/$1/namespace")
    for _ in {1..3000}; do
        if [[ $(ps -ww -o args= -p "$id") == "sleep infinity" && $(readlink "/proc/$id/ns/net") != "$2" ]]; then return; fi
        sleep 0.01
    done
    die "no network namespace: it needs root or user namespaces"
}

network() {
    local name outside
    local -a own=()
    if has_disks; then own=(--mount); fi
    outside=$(readlink /proc/self/ns/net)
    name=network; mkdir -p "$home/$name"
    keep unshare "${space[@]}"
    settled network "$outside"
    outside=$(inside network readlink /proc/self/ns/net)
    inside network ip link set lo up
    inside network ip link add brokers type bridge
    inside network ip address add "$net.254/24" dev brokers
    inside network ip link set brokers up
    for name in 1 2 3; do
        mkdir -p "$home/$name"
        keep nsenter "${enter[@]}" -t "$(cat "$home/network/namespace")" -- unshare --net "${own[@]}"
        settled "$name" "$outside"
        inside network ip link add "broker$name" type veth peer name eth0 netns "$(cat "$home/$name/namespace")"
        inside network ip link set "broker$name" master brokers up
        inside "$name" ip link set lo up
        inside "$name" ip link set eth0 address "02:00:00:00:00:0$name" up
        inside "$name" ip address add "$net.$name/24" dev eth0
    done
}

# What is mounted in the namespace of a broker is gone with it, whatever becomes of this script.
plug_in() { inside "$1" mount -t ext4 -o loop,barrier=0 "$home/$1/disk" "$home/$1/data"; }

disk() {
    mkdir -p "$home/$1/data"
    truncate -s 2G "$home/$1/disk"
    mkfs.ext4 -q -m 0 "$home/$1/disk"
    plug_in "$1"
    # Kafka takes every folder for a partition.
    inside "$1" rmdir "$home/$1/data/lost+found"
}

configure() {
    cat > "$home/$1/server.properties" <<P
process.roles=broker,controller
node.id=$1
controller.quorum.voters=1@$net.1:9093,2@$net.2:9093,3@$net.3:9093
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://$net.$1:9092,CONTROLLER://$net.$1:9093
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=$home/$1/data
auto.create.topics.enable=false
default.replication.factor=3
min.insync.replicas=2
replica.lag.time.max.ms=$lag
replica.fetch.wait.max.ms=50
broker.heartbeat.interval.ms=500
num.network.threads=2
num.io.threads=2
P
    cat > "$home/$1/log4j2.properties" <<P
rootLogger.level=WARN
rootLogger.appenderRef.o.ref=o
appender.o.type=Console
appender.o.name=o
appender.o.layout.type=PatternLayout
appender.o.layout.pattern=[%d] %p %m (%c)%n
P
}

# In bash, to be put before the arguments of java.
options() {
    echo -Xms128m -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.awt.headless=true \
        "-Dlog4j2.configurationFile=$home/$1/log4j2.properties" "-Dkafka.logs.dir=$home/$1/logs" -cp "$libs/*"
}

launch() {
    local broker=$1
    libs=$(cat "$home/libs")
    local -a of_java
    set -f; read -ra of_java <<< "$(options "$broker")"; set +f
    local -a into=("${enter[@]}")
    if has_disks; then into+=(--mount); fi
    LD_PRELOAD=$home/clock.so BERNSTREAM_TEST_CLOCK=$home/$broker/clock setsid nohup \
        nsenter "${into[@]}" -t "$(cat "$home/$broker/namespace")" -- \
        "$(type -P java)" "${of_java[@]}" kafka.Kafka "$home/$broker/server.properties" >> "$home/$broker/log" 2>&1 < /dev/null &
    echo $! > "$home/$broker/pid"
}

# Java takes minutes to start where many others want the processors.
await() {
    for _ in {1..3000}; do
        if inside network bash -c "exec 3<>/dev/tcp/$net.$1/9092" 2>/dev/null; then return; fi
        kill -0 "$(cat "$home/$1/pid")" 2>/dev/null || { tail -5 "$home/$1/log" >&2; die "broker $1 ended, see $home/$1/log"; }
        sleep 0.1
    done
    die "broker $1 did not open its port within five minutes"
}

start() {
    if [[ -f $home/network/namespace ]]; then die "it runs already, or was not stopped: tests/cluster.sh stop"; fi
    for command in java cc ip nsenter unshare; do command -v $command >/dev/null || die "needs $command"; done
    mkdir -p "$home"
    "$tests/kafka.sh" jars > "$home/libs"
    libs=$(cat "$home/libs")
    cc -shared -fPIC -O1 -o "$home/clock.so" "$tests/harness/clock.c"
    if [[ -n ${BERNSTREAM_CLUSTER_DISKS:-} ]]; then
        touch "$home/disks"
        cc -O1 -o "$home/power" "$tests/harness/power.c"
    fi
    network
    local id broker
    local -a of_java
    for broker in 1 2 3; do
        configure "$broker"
        head -c 8 /dev/zero > "$home/$broker/clock"
        set -f; read -ra of_java <<< "$(options "$broker")"; set +f
        id=${id:-$(java "${of_java[@]}" kafka.tools.StorageTool random-uuid | tail -1)}
        if has_disks; then disk "$broker"; fi
        inside "$broker" "$(type -P java)" "${of_java[@]}" kafka.tools.StorageTool format -t "$id" -c "$home/$broker/server.properties" > "$home/$broker/log" 2>&1 \
            || die "could not format its storage, see $home/$broker/log"
        # These are no brokers that are new.
        if has_disks; then inside "$broker" sync -f "$home/$broker/data"; fi
        launch "$broker"
    done
    for broker in 1 2 3; do await "$broker"; done
    echo "$servers"
}

signal() { running "$2" || die "broker $2 does not run"; kill "-$1" "$(cat "$home/$2/pid")"; }

crash() {
    signal KILL "$1"
    while running "$1"; do sleep 0.05; done
}

restart() {
    running "$1" && die "broker $1 is running"
    launch "$1"
    await "$1"
}

# A process that was killed is gone before its files are closed.
unplug() {
    for _ in {1..300}; do
        inside "$1" umount "$home/$1/data" 2>/dev/null && return
        sleep 0.1
    done
    die "the disk of broker $1 is in use 30 s after its power was cut"
}

# All stand still first, so that none does anything with a disk that is shut down already.
power_off() {
    local broker
    for broker in 1 2 3; do signal STOP "$broker"; done
    for broker in 1 2 3; do inside "$broker" "$home/power" "$home/$broker/data"; done
    for broker in 1 2 3; do crash "$broker"; done
    for broker in 1 2 3; do
        unplug "$broker"
        plug_in "$broker"
    done
}

power_on() {
    local broker
    for broker in 1 2 3; do launch "$broker"; done
    for broker in 1 2 3; do await "$broker"; done
}

power() {
    has_disks || die "the brokers have no disks of their own: BERNSTREAM_CLUSTER_DISKS=1 tests/cluster.sh start"
    case $1 in off) power_off ;; on) power_on ;; *) die "power is off or on" ;; esac
}

can_lose_power() {
    [[ $(id -u) = 0 ]] || die "needs root"
    command -v mkfs.ext4 > /dev/null || die "needs mkfs.ext4"
    local place
    place=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$place'" EXIT
    truncate -s 16M "$place/disk"
    mkfs.ext4 -q "$place/disk"
    mkdir "$place/data"
    unshare --mount mount -t ext4 -o loop "$place/disk" "$place/data"
}

# Sends what is for a neighbour to an address that nobody has: it is lost in silence, as in a cable that was pulled.
cut() {
    inside "$1" ip neighbour replace "$net.$2" lladdr 02:00:00:00:00:ff dev eth0 nud permanent
    inside "$2" ip neighbour replace "$net.$1" lladdr 02:00:00:00:00:ff dev eth0 nud permanent
}
heal() {
    inside "$1" ip neighbour replace "$net.$2" lladdr "02:00:00:00:00:0$2" dev eth0 nud permanent
    inside "$2" ip neighbour replace "$net.$1" lladdr "02:00:00:00:00:0$1" dev eth0 nud permanent
}

# Eight bytes, the lowest first, that the broker's process has mapped.
clock() {
    local micros=$(($2 * 1000000)) bytes= byte
    for byte in {0..7}; do bytes+=$(printf '\\x%02x' $(((micros >> (8 * byte)) & 255))); done
    printf '%b' "$bytes" | dd of="$home/$1/clock" bs=8 conv=notrunc status=none
}

stop() {
    local name file
    for name in 1 2 3; do
        if running "$name"; then kill -9 "$(cat "$home/$name/pid")"; fi
    done
    for name in 1 2 3 network; do
        file=$home/$name/namespace
        if is "$file" "sleep infinity"; then kill -9 "$(cat "$file")"; fi
    done
    for name in 1 2 3; do
        while running "$name"; do sleep 0.05; done
        rm -rf "${home:?}/$name"
    done
    rm -rf "$home/network" "$home/libs" "$home/clock.so" "$home/disks" "$home/power"
}

broker='^[1-3]$'
case ${1:-} in
    start | stop) "$1" ;;
    exec) inside network "${@:2}" ;;
    kill) crash "${2:?broker}" ;;
    restart) restart "${2:?broker}" ;;
    freeze) signal STOP "${2:?broker}" ;;
    thaw) signal CONT "${2:?broker}" ;;
    cut | heal) [[ ${2:-} =~ $broker && ${3:-} =~ $broker && $2 != "$3" ]] || die "$1 wants two brokers"; "$1" "$2" "$3" ;;
    clock) clock "${2:?broker}" "${3:?seconds}" ;;
    power) power "${2:?off or on}" ;;
    can-lose-power) can_lose_power ;;
    data) echo "$home/${2:?broker}/data" ;;
    *) sed -n '2,23s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
