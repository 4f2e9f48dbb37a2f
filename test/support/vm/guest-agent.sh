# Inside the guest, as its process 1: runs the host's scripts and sends back what they said.
# A question is one line, `<id> <script in base64>`; its answer is `<id> <exit code> <standard
# output in base64> <standard error in base64>`. Scripts run beside each other.

mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /tmp

mount_share() {
  mkdir -p "/mnt/$1"
  mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 "$1" "/mnt/$1"
}
# Every share has the name of its folder below /mnt; `checkout` is mounted already.
for tag in /sys/bus/virtio/drivers/9pnet_virtio/virtio*/mount_tag; do
  name=$(tr -d '\0' <"$tag")
  [ "$name" = checkout ] || mount_share "$name"
done

/lib/systemd/systemd-udevd --daemon
udevadm trigger --type=subsystems --action=add
udevadm trigger --type=devices --action=add
udevadm settle

export PATH=/mnt/node:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C.UTF-8
export NODE_COMPILE_CACHE=/tmp/node-compile-cache
ulimit -c 0
ip link set lo up 2>/dev/null

cd /mnt/checkout || exit 1

answer() {
  local id=$1 code=0 work=/run/job.$1
  mkdir "$work"
  base64 -d <<<"$2" >"$work/script"
  bash "$work/script" >"$work/out" 2>"$work/err" </dev/null 3>&- || code=$?
  {
    flock 9
    printf '%s %s %s %s\n' "$id" "$code" "$(base64 -w0 "$work/out")" "$(base64 -w0 "$work/err")" >&3
  } 9>/run/answer.lock
}

exec 3<>/dev/virtio-ports/flasher-agent || exit 1
echo 'flasher-guest: ready' >/dev/console
while read -r id script <&3; do
  answer "$id" "$script" &
done
