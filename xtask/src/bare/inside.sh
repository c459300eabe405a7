# Arguments: system folder, Rust toolchain, user, shell line. Runs in fresh mount and process namespaces.
set -eu
system=$1 rust=$2 user=$3 line=$4
mount -t proc proc "$system/proc"
mount --rbind /dev "$system/dev"
mkdir -p "$system/opt/rust"
mount --bind -o ro "$rust" "$system/opt/rust"
cp -L /etc/resolv.conf "$system/etc/resolv.conf"
home=/root
[ "$user" = root ] || home=/home/$user
exec chroot --userspec="$user" "$system" /usr/bin/env -i HOME="$home" USER="$user" LANG=C.UTF-8 \
    PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
    SSL_CERT_FILE=/opt/host/ca-certificates.crt CARGO_HTTP_CAINFO=/opt/host/ca-certificates.crt PIP_CERT=/opt/host/ca-certificates.crt \
    /bin/bash -c "$line" < /dev/null
