#!/bin/sh
# First program of the guest: modules, network, then the script that came with the second archive.
# Results go to the second serial port, so that kernel messages never end up between them.
export PATH=/usr/sbin:/usr/bin:/usr/lib/gateweave/busybox HOME=/root TERM=linux
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
mkdir -p /dev/pts /run
mount -t devpts pts /dev/pts

while read -r module; do
    insmod "/usr/lib/gateweave/modules/$module.ko" || echo "module $module: not loaded"
done < /usr/lib/gateweave/modules/order

. /gateweave/settings
ip link set lo up
ip link set eth0 mtu "$MTU" up || echo "eth0 does not take MTU $MTU"
ip address add "$ADDRESS" dev eth0

if [ "$INTERACTIVE" = 1 ]; then
    echo
    echo "Linux guest: eth0 is $ADDRESS, MTU $MTU. 'poweroff -f' or Ctrl-A X ends it."
    setsid cttyhack sh
    poweroff -f
fi

stty -F /dev/ttyS1 -opost
exec < /dev/null > /dev/ttyS1 2>&1
read -r uptime rest < /proc/uptime
echo "@up $uptime"
sh /gateweave/script
echo "@exit $?"
sleep 5
poweroff -f
