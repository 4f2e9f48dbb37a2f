/** The container images run with podman: both servers answer, and TFTP sends our boot file. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runLabelledScript } from '#test/support/system/labelled-script.ts'
import { findBuildObstacle, openContainers } from '#test/support/vm/built-images.ts'

const test = suite('container images')
const hasPodman = spawnSync('podman', ['--version']).status === 0
const obstacle = findBuildObstacle() ?? (hasPodman ? null : 'there is no podman')
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** What firmware asks for, and what that asks for. */
const FILES = [
  'undionly.kpxe',
  'ipxe.efi',
  'ipxe-arm64.efi',
  'shimx64.efi',
  'grubx64.efi',
  'grub/grub.cfg',
]

/**
 * In a network of their own, with images and containers below `$1`. `$2` is the archive, `$3` the version, `$4` what is asked for by TFTP. runc and
 * fixed limits: crun rejects hosts with both kinds of cgroups, and raising limits may be forbidden.
 */
const SCRIPT = String.raw`
set -eu
ip link set lo up
podman() {
  command podman --root "$folder/root" --runroot "$folder/run" --tmpdir "$folder/tmp" --log-level=error \
    --runtime runc --cgroup-manager=cgroupfs "$@"
}
folder=$1
archive=$2
version=$3
files=$4
trap 'podman rm --force --time 2 web cache tftp >/dev/null; podman volume rm state >/dev/null' EXIT
for name in web cache tftp; do
  case $name in tftp) more=--cap-add=NET_BIND_SERVICE,SETUID,SETGID ;; *) more=--volume=state:/var/lib/flasher ;; esac
  podman pull --quiet "oci-archive:$archive:flasher-$name:$version" >/dev/null
  podman run --detach --name $name --network host --read-only --cap-drop all --security-opt no-new-privileges \
    --ulimit nofile=4096:4096 --ulimit nproc=4096:4096 $more "localhost/flasher-$name:$version" >/dev/null
done
for port in 8080 8081; do
  left=300
  until answer=$(curl -fsS -m 5 "http://127.0.0.1:$port/healthz" 2>/dev/null); do
    left=$((left - 1))
    [ $left -gt 0 ] || { podman logs web; podman logs cache; exit 1; }
    sleep 0.2
  done
  echo "health $port: $answer"
done
echo "user: $(podman exec web sh -c 'id -un; stat -c %U:%a /var/lib/flasher/state.db' | tr '\n' ' ')"
for file in $files; do
  echo "$file: $(curl -fsS -m 60 "tftp://127.0.0.1/$file" | sha256sum | cut -c 1-64)"
  podman exec tftp sha256sum "/var/lib/tftpboot/$file" | cut -c 1-64 | sed "s|^|wanted $file: |"
done
`

run('flasher-web, flasher-cache and the TFTP sidecar start without privileges', async () => {
  const { archive, version } = await openContainers()
  const folder = await mkdtemp(join(tmpdir(), 'flasher-podman-'))
  try {
    const { text, lineOf } = await runLabelledScript({
      namespaces: ['--net'],
      script: SCRIPT,
      operands: [folder, archive, version, FILES.join(' ')],
    })
    assert.match(lineOf('health 8080'), /"ok"/)
    assert.match(lineOf('health 8081'), /"ok"/)
    assert.match(lineOf('user'), /^flasher flasher:600/)
    for (const file of FILES) {
      assert.match(lineOf(file), /^[0-9a-f]{64}$/, text)
      assert.is(lineOf(file), lineOf(`wanted ${file}`), text)
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test.run()
