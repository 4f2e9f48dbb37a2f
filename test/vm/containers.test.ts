/** The container images run with podman: both servers answer, and TFTP sends our boot file. */
import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { runLabelledScript } from '../support/system/labelled-script.ts'
import { findBuildObstacle, openContainers } from '../support/vm/built-images.ts'

const test = suite('container images')
const hasPodman = spawnSync('podman', ['--version']).status === 0
const obstacle = findBuildObstacle() ?? (hasPodman ? null : 'there is no podman')
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/**
 * In a network of their own, with images and containers below `$1`. `$2` is the archive, `$3` the version. runc and
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
for file in ipxe.efi ipxe-arm64.efi undionly.kpxe; do
  echo "$file: $(curl -fsS -m 60 "tftp://127.0.0.1/$file" | sha256sum | cut -c 1-64)"
  podman exec tftp sha256sum "/usr/share/flasher/tftp/$file" | cut -c 1-64 | sed "s/^/wanted $file: /"
done
`

run('flasher-web, flasher-cache and the TFTP sidecar start without privileges', async () => {
  const { archive, version } = await openContainers()
  const folder = await mkdtemp(join(tmpdir(), 'flasher-podman-'))
  try {
    const { text, lineOf } = await runLabelledScript({
      namespaces: ['--net'],
      script: SCRIPT,
      operands: [folder, archive, version],
    })
    assert.match(lineOf('health 8080'), /"ok"/)
    assert.match(lineOf('health 8081'), /"ok"/)
    assert.match(lineOf('user'), /^flasher flasher:600/)
    for (const file of ['ipxe.efi', 'ipxe-arm64.efi', 'undionly.kpxe']) {
      assert.match(lineOf(file), /^[0-9a-f]{64}$/, text)
      assert.is(lineOf(file), lineOf(`wanted ${file}`), text)
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

run('compose file and quadlets name the images of this version', async () => {
  const { version } = await openContainers()
  const folder = join(import.meta.dirname, '../../docs/containers')
  const compose = await readFile(join(folder, 'compose.yaml'), 'utf8')
  for (const name of ['flasher-web', 'flasher-cache', 'flasher-tftp']) {
    assert.match(compose, `image: ${name}:${version}`)
    const quadlet = await readFile(join(folder, `${name}.container`), 'utf8')
    assert.match(quadlet, `Image=localhost/${name}:${version}`)
  }
})

test.run()
