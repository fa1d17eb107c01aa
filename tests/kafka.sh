#!/usr/bin/env bash
# A real Apache Kafka for the tests: one KRaft node on free loopback ports. Needs Java 17 and Maven.
#
#   tests/kafka.sh start     starts it unless it runs, and prints host:port
#   tests/kafka.sh address   prints host:port of the running broker
#   tests/kafka.sh secure    prints host:port, ca.pem and a password file of its listener that requires TLS and a password:
#                            SCRAM-SHA-512 or PLAIN, user bernstream
#   tests/kafka.sh stop      stops it and deletes everything but Apache Kafka itself
#   tests/kafka.sh crash     kills it and keeps its data
#   tests/kafka.sh halt      stops it and keeps its data
#   tests/kafka.sh restart   starts it again on the same port, with the data that was kept
#   tests/kafka.sh acls ...  kafka-acls with these arguments
#   tests/kafka.sh jars      fetches Apache Kafka, unless it is there, and prints its folder
#
# A broker of one's own, to be crashed: BERNSTREAM_KAFKA_HOME names another folder for it. With BERNSTREAM_KAFKA_ACLS its users have no
# rights but those that are given, except at the listener without a password, where everything is allowed. Where it is "some", that
# holds there too, and only for topics to which any right was given. BERNSTREAM_KAFKA_CONTROLLER is the port by which the broker reaches
# its controller, if somebody stands between the two.
#
#   BERNSTREAM_TEST_KAFKA=$(tests/kafka.sh start) cargo test
set -euo pipefail

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
shared=$(dirname "$tests")/target/kafka
home=${BERNSTREAM_KAFKA_HOME:-$shared}
version=$(sed -n '/kafka_2.13/{n;s/[^0-9]*\([0-9.]*\).*/\1/p}' "$tests/kafka-pom.xml")
libs=$shared/libs-$version

die() { echo "kafka.sh: $*" >&2; exit 1; }

options=(-Xms256m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.awt.headless=true
    "-Dlog4j2.configurationFile=$home/log4j2.properties" "-Dkafka.logs.dir=$home/logs" -cp "$libs/*")

# A process id may have been given to somebody else since.
running() {
    [[ -f $home/pid ]] && [[ $(ps -ww -o args= -p "$(cat "$home/pid")" 2>/dev/null) == *"$home/server.properties"* ]]
}

open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Three in a row, below the range from which the system hands out ports to clients.
free_ports() {
    local port
    for _ in {1..100}; do
        port=$((20000 + RANDOM % 9998))
        if ! open "$port" && ! open $((port + 1)) && ! open $((port + 2)); then echo "$port"; return; fi
    done
    die "found no free ports between 20000 and 29999"
}

fetch() {
    if cmp -s "$tests/kafka-pom.xml" "$libs/.complete"; then return; fi
    command -v mvn >/dev/null || die "needs Maven to fetch Apache Kafka: apt-get install maven"
    rm -rf "$libs"
    local said
    # Even in its batch mode Maven prints escape sequences, to whatever it is.
    said=$(mvn -q -B -f "$tests/kafka-pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$libs" 2>&1) || {
        sed 's/\x1b\[[0-9;]*m//g' <<< "$said" >&2
        die "Maven could not fetch Apache Kafka $version"
    }
    cp "$tests/kafka-pom.xml" "$libs/.complete"
}

jars() {
    fetch
    echo "$libs"
}

# A certificate for 127.0.0.1 that is its own authority, and a password.
secrets() {
    rm -f "$home/keystore.p12" "$home/ca.pem" "$home/password"
    (umask 077; printf '%s\n' "$(head -c 18 /dev/urandom | od -An -tx1 | tr -d ' \n')" > "$home/password")
    local store=(-keystore "$home/keystore.p12" -storetype PKCS12 -storepass:file "$home/password" -alias broker)
    keytool -genkeypair "${store[@]}" -keyalg EC -groupname secp256r1 -validity 3650 -dname CN=bernstream-test \
        -ext san=ip:127.0.0.1 > "$home/log" 2>&1 || die "keytool could not make a certificate, see $home/log"
    keytool -exportcert "${store[@]}" -rfc -file "$home/ca.pem" >> "$home/log" 2>&1 \
        || die "keytool could not export its certificate, see $home/log"
}

configure() {
    local broker=$1 controller=$2 secure=$3 password
    rm -rf "$home/data"
    secrets
    password=$(cat "$home/password")
    echo "127.0.0.1:$secure" > "$home/secure"
    touch "$home/server.properties"
    chmod 600 "$home/server.properties"
    cat > "$home/server.properties" <<P
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${BERNSTREAM_KAFKA_CONTROLLER:-$controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$broker,SECURE://127.0.0.1:$secure,CONTROLLER://127.0.0.1:$controller
advertised.listeners=PLAINTEXT://127.0.0.1:$broker,SECURE://127.0.0.1:$secure
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL
listener.name.secure.ssl.keystore.type=PKCS12
listener.name.secure.ssl.keystore.location=$home/keystore.p12
listener.name.secure.ssl.keystore.password=$password
listener.name.secure.sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_bernstream="$password";
log.dirs=$home/data
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
min.insync.replicas=1
# One broker has no replicas that lag; the tests' slack is longer than this.
replica.fetch.wait.max.ms=50
replica.lag.time.max.ms=50
num.network.threads=2
num.io.threads=2
P
    # Beside hundreds of tests it can be starved for longer than the 9 s after which its controller would take it for dead.
    # One that is crashed could not come back for as long.
    [[ $home != "$shared" ]] || echo broker.session.timeout.ms=60000 >> "$home/server.properties"
    if [[ -n ${BERNSTREAM_KAFKA_ACLS:-} ]]; then
        cat >> "$home/server.properties" <<P
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
$([[ $BERNSTREAM_KAFKA_ACLS == some ]] && echo allow.everyone.if.no.acl.found=true || echo super.users=User:ANONYMOUS)
P
    fi
    cat > "$home/log4j2.properties" <<P
rootLogger.level=WARN
rootLogger.appenderRef.o.ref=o
appender.o.type=Console
appender.o.name=o
appender.o.layout.type=PatternLayout
appender.o.layout.pattern=[%d] %p %m (%c)%n
P
}

start() {
    if running; then address; return; fi
    command -v java >/dev/null || die "needs Java 17: apt-get install default-jre-headless"
    mkdir -p "$home"
    fetch
    local broker controller secure id
    broker=$(free_ports)
    controller=$((broker + 1))
    secure=$((broker + 2))
    configure "$broker" "$controller" "$secure"
    id=$(java "${options[@]}" kafka.tools.StorageTool random-uuid | tail -1)
    java "${options[@]}" kafka.tools.StorageTool format -t "$id" -c "$home/server.properties" \
        --add-scram "SCRAM-SHA-512=[name=bernstream,password=$(cat "$home/password")]" > "$home/log" 2>&1 \
        || die "could not format its storage, see $home/log"
    launch "$broker"
}

launch() {
    local broker=$1
    setsid nohup "$(type -P java)" "${options[@]}" kafka.Kafka "$home/server.properties" >> "$home/log" 2>&1 < /dev/null &
    echo $! > "$home/pid"
    echo "127.0.0.1:$broker" > "$home/address"
    # Java takes minutes to start where many others want the processors.
    for _ in {1..3000}; do
        # Not `running`: for a moment the process still has the name of this script.
        kill -0 $! 2>/dev/null || { tail -5 "$home/log" >&2; die "the broker ended at once, see $home/log"; }
        if open "$broker"; then address; return; fi
        sleep 0.1
    done
    tail -5 "$home/log" >&2
    stop
    die "the broker did not open its port within five minutes"
}

crash() {
    running || die "no broker is running"
    kill -9 "$(cat "$home/pid")"
    while running; do sleep 0.05; done
}

halt() {
    running || die "no broker is running"
    kill "$(cat "$home/pid")"
    while running; do sleep 0.05; done
}

restart() {
    running && die "the broker is running"
    launch "$(sed 's/.*://' "$home/address")"
}

stop() {
    if running; then
        local pid
        pid=$(cat "$home/pid")
        kill "$pid"
        for _ in {1..300}; do
            running || break
            sleep 0.1
        done
        # Its data goes anyway.
        if running; then kill -9 "$pid"; fi
    fi
    rm -rf "$home"/{pid,address,secure,data,logs,log,log4j2.properties,server.properties,keystore.p12,ca.pem,password}
}

address() {
    running || die "no broker is running: tests/kafka.sh start"
    cat "$home/address"
}

secure() {
    running || die "no broker is running: tests/kafka.sh start"
    [[ -f $home/secure ]] || die "the broker was started without it: tests/kafka.sh stop, then start"
    echo "$(cat "$home/secure") $home/ca.pem $home/password"
}

acls() {
    java "${options[@]}" org.apache.kafka.tools.AclCommand --bootstrap-server "$(address)" "$@"
}

case ${1:-} in
    acls) "$@" ;;
    start | stop | crash | halt | restart | address | secure | jars) "$1" ;;
    *) sed -n '2,19s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
