/** The Debian package is installed, its programs run as its units say, and it goes without a trace. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runLabelledScript } from '#test/support/system/labelled-script.ts'
import { findBuildObstacle, openDebs } from '#test/support/vm/built-images.ts'

const test = suite('Debian package')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/**
 * In a copy of this system that is thrown away: an overlay in memory, with processes, mounts and a network
 * of its own. `$1` and `$2` are the packages.
 */
const SCRIPT = String.raw`
set -eu
place=$(mktemp -d)
mount -t tmpfs tmpfs "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" overlay "$place/root"
root=$place/root
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
ip link set lo up
cp "$1" "$root/programs.deb"
cp "$2" "$root/server.deb"
within() { chroot "$root" "$@"; }

within dpkg --install /programs.deb
echo "alone: $(within flasher --version), $(cd "$root" && ls usr/bin/flasher* etc/flasher 2>/dev/null | tr '\n' ' ')"
within dpkg --install /server.deb
echo "installed: $(within dpkg-query --status flasher-server | sed -n 's/^Status: //p')"
echo "enabled: $(cd "$root/etc/systemd/system/multi-user.target.wants" && echo flasher-*)"
echo "owner: $(within stat -c '%U:%G %a' /etc/flasher/flasher.env)"
within systemd-analyze verify /usr/lib/systemd/system/flasher-web.service \
  /usr/lib/systemd/system/flasher-cache.service /usr/lib/systemd/system/flasher-proxy.path \\
  /usr/lib/systemd/system/flasher-proxy.service && echo 'units: fine'
echo "version: $(within flasher --version)"

# This host may have a state of its own, which shows through.
rm -rf "$root/var/lib/flasher"
# What the units say, by hand: systemd is not running.
install -d -m 700 -o "$(within id -u flasher)" -g "$(within id -g flasher)" "$root/var/lib/flasher"
started=
for name in flasher-cache flasher-web; do
  unit=$root/usr/lib/systemd/system/$name.service
  program=$(sed -n 's/^ExecStart=//p' "$unit")
  user=$(sed -n 's/^User=//p' "$unit")
  env=$(sed -n 's/^Environment=//p' "$unit")
  # Replaces the shell, so that its number is the program's.
  (exec chroot "$root" env -i PATH=/usr/bin:/bin $env setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs \
    "$program" >"$place/$name.log" 2>&1) &
  started="$started $!"
done
for port in 8080 8081; do
  left=600
  until answer=$(within curl -fsS "http://127.0.0.1:$port/healthz" 2>/dev/null); do
    left=$((left - 1))
    [ $left -gt 0 ] || { cat "$place"/*.log; exit 1; }
    sleep 0.2
  done
  echo "health $port: $answer"
done
echo "page: $(within curl -fsSL http://127.0.0.1:8080/ | grep -c '<html')"
kill $started
wait $started || :

within dpkg --purge flasher-server flasher
echo "left: $(cd "$root" && ls -d usr/lib/flasher var/lib/flasher etc/flasher usr/bin/flasher* 2>/dev/null | tr '\n' ' ')"
echo "user: $(within getent passwd flasher || echo none)"
`

run('is installed, started and purged', async () => {
  const { programs, server } = await openDebs()
  const { text, lineOf } = await runLabelledScript({
    namespaces: ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'],
    script: SCRIPT,
    operands: [programs, server],
  })
  assert.match(
    lineOf('alone'),
    /^flasher \d+\.\d+\.\d+.*, usr\/bin\/flasher usr\/bin\/flasher-tui $/,
    text,
  )
  assert.is(lineOf('installed'), 'install ok installed', text)
  assert.is(lineOf('enabled'), 'flasher-cache.service flasher-web.service', text)
  assert.is(lineOf('owner'), 'root:flasher 640')
  assert.is(lineOf('units'), 'fine', text)
  assert.match(lineOf('version'), /\d+\.\d+\.\d+/)
  assert.match(lineOf('health 8080'), /"ok"/)
  assert.match(lineOf('health 8081'), /"ok"/)
  assert.is(lineOf('page'), '1')
  assert.is(lineOf('left').trim(), '')
  assert.is(lineOf('user'), 'none')
})

test.run()
