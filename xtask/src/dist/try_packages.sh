# try_packages.sh FOLDER: the life of the packages in FOLDER/packages on a copy of this system that
# is thrown away. They are installed, the relay starts, a stream is published and played, the
# configuration is changed, the packages are installed again, the relay ends, and all is purged.
# Runs as root in namespaces of its own, so that nothing of it outlives this script. FOLDER/notify
# has the socket of a service manager. The files of the container run as well.
trial=$1
root=$trial/layers/root
unit=punctual-relay.service

fail() {
    echo "try_packages.sh: $*" >&2
    for log in "$trial"/*.log; do
        echo "--- $log" >&2
        tail -n 20 "$log" >&2
    done
    exit 1
}

# Repeats a command until it succeeds, for up to 20 s.
wait_until() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || fail "in vain: $*"
        sleep 0.1
    done
}

inside() { chroot "$root" "$@"; }

# A copy of this system: changes go to memory.
make_root() {
    mkdir -p "$trial/layers"
    mount -t tmpfs -o mode=755 tmpfs "$trial/layers"
    mkdir "$trial/layers/changes" "$trial/layers/work" "$root"
    mount -t overlay overlay \
        -o "lowerdir=/,upperdir=$trial/layers/changes,workdir=$trial/layers/work" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mkdir -p "$root/run/trial" "$root/run/notify"
    mount --bind "$trial/packages" "$root/run/trial"
    mount --bind "$trial/notify" "$root/run/notify"
    ip link set lo up
    # The packages think that systemd runs. What they ask of it is written down, and not done,
    # except for links of services.
    mkdir -p "$root/run/systemd/system"
    mv "$root/usr/bin/systemctl" "$root/usr/bin/systemctl.real"
    cat >"$root/usr/bin/systemctl" <<'END'
#!/bin/sh
echo "$*" >>/run/systemctl.log
case "$*" in *preset*) exec systemctl.real "$@" ;; esac
END
    chmod 755 "$root/usr/bin/systemctl"
    # Containers have it, so that packages start and stop nothing.
    rm -f "$root/usr/sbin/policy-rc.d"
}

install_packages() {
    : >"$root/run/systemctl.log"
    inside sh -c 'dpkg --install /run/trial/*.deb' >"$trial/dpkg.log" 2>&1 || fail "dpkg --install"
}

# Fails if the packages asked systemd to do this with the relay.
assert_not_asked() {
    if grep -E "(^| )$1 .*punctual-relay" "$root/run/systemctl.log"; then
        fail "the packages asked for: $1"
    fi
}

# Starts the relay by the command of the unit, with the user and the folder of the unit.
start_relay() {
    command=$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/$unit")
    user=$(sed -n 's/^User=//p' "$root/lib/systemd/system/$unit")
    home=/var/lib/punctual-relay
    inside install -d -m 750 -o "$user" -g "$user" "$home"
    chroot --userspec="$user:$user" "$root" env -i PATH=/usr/bin:/bin STATE_DIRECTORY="$home" \
        NOTIFY_SOCKET=/run/notify/socket WATCHDOG_USEC=1000000 \
        sh -c "cd $home && exec $command" >"$trial/relay.log" 2>&1 &
    relay=$!
    wait_until inside punctual-relay health
}

publish() {
    while :; do
        inside punctual route /run/trial/clip.ts \
            'srt://127.0.0.1:8890?streamid=publish:live' || sleep 0.2
    done >"$trial/publisher.log" 2>&1
}

play() {
    until inside punctual route 'srt://127.0.0.1:8890?streamid=read:live' /tmp/played.ts; do
        sleep 0.2
    done >"$trial/viewer.log" 2>&1
}

has_played() { [ "$(stat -c %s "$root/tmp/played.ts")" -gt "$1" ]; }

# The start of each of the first packets of a transport stream.
assert_transport_stream() {
    for place in 0 188 376 1880; do
        byte=$(od -A n -t x1 -j "$place" -N 1 "$root/tmp/played.ts")
        [ "$byte" = " 47" ] || fail "no packet of a transport stream begins at $place"
    done
}

# The files of the image, as far as they are ours, with the libraries of this system.
run_container() {
    image=$trial/layers/image
    program=$root/usr/bin/punctual-relay
    mkdir -p "$image/usr/bin" "$image/config" "$image/recordings" "$image/state"
    cp "$program" "$image/usr/bin/"
    cp "$root/etc/punctual/relay.toml" "$image/config/"
    ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$image$(dirname "$library")"
        cp --dereference "$library" "$image$library"
    done
    chown -R 65532:65532 "$image/config" "$image/recordings" "$image/state"
    env -i PATH="$PATH" STATE_DIRECTORY=/state chroot --userspec=65532:65532 "$image" \
        /usr/bin/punctual-relay --config /config/relay.toml >"$trial/container.log" 2>&1 &
    container=$!
    wait_until chroot --userspec=65532:65532 "$image" /usr/bin/punctual-relay health \
        --config /config/relay.toml
    kill -TERM "$container"
    wait "$container" || fail "the relay of the container ended with $?"
}

make_root
install_packages
assert_not_asked start
wanted=$root/etc/systemd/system/multi-user.target.wants/$unit
[ -L "$wanted" ] || fail "the service is not enabled"
inside dpkg-query --show --showformat='${Conffiles}' punctual-relay |
    grep -q /etc/punctual/relay.toml || fail "relay.toml is no file of the configuration"

start_relay
publish &
publisher=$!
play &
wait_until has_played 200000

# A change of the configuration has effect, and the stream goes on.
printf '[defaults]\nkeep-viewers = "2s"\n[drain]\nspread = "1s"\n' >>"$root/etc/punctual/relay.toml"
kill -HUP "$relay"
wait_until has_played "$(($(stat -c %s "$root/tmp/played.ts") + 200000))"
assert_transport_stream

# An upgrade neither stops nor restarts the relay, and keeps the changed configuration.
install_packages
for action in stop start restart try-restart; do
    assert_not_asked "$action"
done
kill -0 "$relay" || fail "the relay ended at the upgrade"
wait_until has_played "$(($(stat -c %s "$root/tmp/played.ts") + 200000))"
grep -q '^keep-viewers = "2s"' "$root/etc/punctual/relay.toml" || fail "relay.toml was replaced"

kill "$publisher"
kill -TERM "$relay"
wait "$relay" || fail "the relay ended with $?"
run_container

: >"$root/run/systemctl.log"
inside dpkg --purge punctual-relay punctual >"$trial/dpkg.log" 2>&1 || fail "dpkg --purge"
grep -q "stop .*punctual-relay" "$root/run/systemctl.log" ||
    fail "a removal does not stop the relay"
for rest in "$wanted" "$root/etc/punctual" "$root/var/lib/punctual-relay" \
    "$root/usr/bin/punctual"; do
    [ ! -e "$rest" ] && [ ! -L "$rest" ] || fail "a purge leaves $rest"
done
if inside getent passwd punctual-relay; then
    fail "a purge leaves the user"
fi
echo "the packages were installed, ran, played, changed, were installed again and purged"
