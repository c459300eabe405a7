# Runs in the guest that stands in for the board: the services that the cases want.
export PATH=/gateweave:$PATH
rdma link add rxe0 type rxe netdev eth0 || exit 99
ulimit -l unlimited
forever() { while :; do "$@" > "/run/$1.log" 2>&1 || sleep 0.2; done; }
# A server takes no more than its own size.
rping -s -a 192.168.7.2 -P -S 65535 > /run/rping.log 2>&1 &
forever rdma_server -p 7471 &
forever ucmatose -p 7472 &
forever rdma-test --serve -a 192.168.7.2 &
sleep 2
echo @serving
sleep 100000
