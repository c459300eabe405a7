# Runs in the guest that tests. $BOARD, $CASES ("name:limit name:limit ..."), $ECHO (whether the board echoes UDP port 7) and $QUIET (no
# checks beside the cases), $TEST_PORT and $REGION (what rdma-test is given) and $SELF (this guest's number, its address is $OWN) are set in front. Prints a line `case name=... status=... seconds=...` each; ends with how many failed.
export PATH=/gateweave:$PATH BOARD SELF OWN TEST_PORT
rdma link add rxe0 type rxe netdev eth0 || exit 99
ulimit -l unlimited

# Whether the rest of the board is unharmed: ping and UDP echo all the while.
beside() {
    asked=0 bad=0
    until [ -e /run/stop ]; do
        asked=$((asked + 1))
        ping -c 1 -W 20 -q "$BOARD" > /run/beside.log 2>&1 || { bad=$((bad + 1)); cp /run/beside.log /run/beside.bad; }
        if [ "$ECHO" = 1 ]; then
            udp-check "$BOARD" 7 --lengths 0..=40 --timeout 20 > /run/beside.log 2>&1 || { bad=$((bad + 1)); cp /run/beside.log /run/beside.bad; }
        fi
        echo "$asked $bad" > /run/beside
        sleep 0.5
    done
}

cat > /run/expect <<'SCRIPT'
#!/bin/sh
# expect TEXT COMMAND ...: whether the command says TEXT.
text=$1; shift
"$@" > /run/expect.log 2>&1
cat /run/expect.log
grep -q -e "$text" /run/expect.log
SCRIPT
cat > /run/pinged <<'SCRIPT'
#!/bin/sh
# pinged COUNT [OPTIONS]: whether rping did so many rounds and found every byte right. Its exit status tells neither: it is 0 when the
# server hangs up, and 255 when a thread of its own closes the channel before another has left it.
count=$1; shift
rping -c -a "$BOARD" -v -V -C "$count" "$@" > /run/pinged.log 2> /run/pinged.err
status=$? rounds=$(grep -c '^ping data: rdma-ping-' /run/pinged.log)
echo "rping $*: status $status, $rounds of $count rounds"
[ "$rounds" -eq "$count" ] && ! grep -q mismatch /run/pinged.log /run/pinged.err || { tail -n 5 /run/pinged.err; exit 1; }
SCRIPT
cat > /run/moving <<'SCRIPT'
#!/bin/sh
until grep -q ' of ' "$1" 2> /dev/null; do sleep 0.2; done
SCRIPT
cat > /run/rdma-test <<SCRIPT
#!/bin/sh
exec /gateweave/rdma-test -p $TEST_PORT $REGION "\$@"
SCRIPT
chmod 755 /run/expect /run/pinged /run/moving /run/rdma-test
export PATH=/run:$PATH

[ "$QUIET" = 1 ] || beside &
failed=0
for entry in $CASES; do
    name=${entry%%:*} limit=${entry##*:}
    echo "# $name"
    read -r before rest < /proc/uptime
    timeout -s KILL "$limit" sh "/gateweave/case-$name" > /run/case.log 2>&1
    status=$?
    read -r after rest < /proc/uptime
    if [ $status -ne 0 ]; then
        failed=$((failed + 1))
        tail -n 12 /run/case.log | sed 's/^/#   /'
    fi
    echo "case name=$name status=$status seconds=$(awk "BEGIN { print $after - $before }")"
    grep '^rdma-test ' /run/case.log
done
if [ "$QUIET" != 1 ]; then
    : > /run/stop
    wait
    read -r asked bad < /run/beside
    [ "$bad" = 0 ] || { failed=$((failed + 1)); sed 's/^/#   /' /run/beside.bad; }
    echo "case name=beside status=$bad seconds=0 asked=$asked"
fi
exit $failed
