# Runs in the guest. $BOARD, $PORT, $LARGEST (payload bytes), $PINGS and $LENGTHS are set in front of it. Prints result lines
# `arp ...`, `ping ...`, `udp-check ...`; ends with the number of parts that failed.
failed=0

# The first echo resolves the address; a simulation under a loaded machine may take its time to come up.
ping -c 1 -W 2 -w 60 -s 56 "$BOARD" > /run/first || failed=$((failed + 1))
address=$(ip neigh show to "$BOARD" | sed -n 's/.*lladdr \([^ ]*\).*/\1/p')
echo "arp address=${address:-none}"

# $PINGS echoes with their sizes spread evenly from 0 to $LARGEST; each process sends four of one size
# back to back (-l 4). After the last request ping waits for twice the longest round trip, but at least for one interval: a long
# one (-i 10) keeps it from calling a late answer lost on a loaded machine, and costs nothing where all four come.
groups=$((PINGS / 4))
group=0
: > /run/pings
while [ $group -lt $groups ]; do
    size=$((group * LARGEST / (groups - 1)))
    ping -M do -c 4 -l 4 -i 10 -W 10 -s $size "$BOARD" >> /run/pings 2>&1
    group=$((group + 1))
    [ $((group % 50)) -ne 0 ] || echo "# $((group * 4)) of $PINGS pings"
done
awk '/packets transmitted/ { sent += $1; received += $4; if ($1 != $4) short++ }
     /wrong data byte/ { wrong++ }
     /duplicates/ { duplicates++ }
     END { printf "ping sent=%d received=%d wrong=%d duplicates=%d\n", sent, received, wrong, duplicates
           exit !(sent == want && received == sent && !wrong && !duplicates) }' want=$((groups * 4)) /run/pings || {
    failed=$((failed + 1))
    grep -v -e '^64 bytes' -e '^$' /run/pings | grep -e wrong -e rror -e 'packet loss' | grep -v ' 0% packet loss' | head -5
}

/gateweave/udp-check "$BOARD" "$PORT" --lengths "$LENGTHS" || failed=$((failed + 1))
exit $failed
