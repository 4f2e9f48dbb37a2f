/** The proof that a seed is read: Debian's own cloud-init and ds-identify run on what was flashed. */
import { constants, copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createFlasher } from '#engine/flash/flasher.ts'
import { type FlashOrder, WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { SEED } from '#test/support/disk/first-boot-image.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { openCloudImage } from '#test/support/vm/cloud-image.ts'

const run = $({ quiet: true, verbose: false })
const test = suite('cloud-init on a flashed root')
/** The third partition. */
const ROOT_OFFSET = 34816 * 512

/** What images say of where cloud-init looks, and the note that is then expected. */
const CONFIGURATIONS: readonly (readonly [string, RegExp])[] = [
  ['datasource_list: [ NoCloud, ConfigDrive, None ]\n', /^$/],
  [
    'datasource:\n  None:\n    metadata: {instance-id: x}\ndatasource_list: [None]\n',
    /datasource_l/,
  ],
  ['datasource_list: [ Ec2, None ]\n', /datasource_list/],
  ['datasource_list: [NoCloud]\ndatasource: {NoCloud: {seedfrom: "file:///boot"}}\n', /seedfrom/],
  ['datasource_list: [NoCloud]\ndatasource:\n  NoCloud:\n    fs_label: system\n', /fs_label/],
  ['manual_cache_clean: true\n', /manual_cache_clean/],
]

/** In namespaces of its own, for it sets names and networks. */
const RUN = `set -eu
mount -o "rw,offset=$2" "$1" "$3"
mount -t proc proc "$3/proc"
mount -t tmpfs run "$3/run"
mkdir "$3/run/cloud-init"
PATH_ROOT="$3" DI_LOG=/dev/null sh "$3/usr/lib/cloud-init/ds-identify" --force 2>/dev/null
cat "$3/run/cloud-init/cloud.cfg"
chroot "$3" /usr/bin/cloud-init init --local >/dev/null 2>&1
chroot "$3" /usr/bin/cloud-init init >/dev/null 2>&1 || true
cat "$3/var/log/cloud-init.log"
chroot "$3" cat /var/lib/cloud/instance/user-data.txt
`

async function withRoot(device: string, script: string): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'flasher-root-'))
  try {
    const argv = ['--mount', '--net', '--uts', '--pid', '--fork', 'sh', '-c', script, 'sh']
    return (await run`unshare ${argv} ${device} ${ROOT_OFFSET} ${root}`).stdout
  } finally {
    await rm(root, { recursive: true })
  }
}

const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`  skipped: ${obstacle}`)

for (const [text, words] of obstacle === null ? CONFIGURATIONS : []) {
  test(`takes our seed: ${text.replaceAll('\n', ' | ')}`, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'flasher-cloud-'))
    try {
      const image = join(folder, 'cloud.img')
      await copyFile(await openCloudImage(), image, constants.COPYFILE_FICLONE)
      {
        await using loop = await createLoop({ backing: image })
        const configuration = join(folder, 'configuration')
        await writeFile(configuration, text)
        const name = 'etc/cloud/cloud.cfg.d'
        await withRoot(
          loop.device,
          `set -eu; mount -o "rw,offset=$2" "$1" "$3"; rm "$3/${name}/99-flasher-test.cfg"; cp ${configuration} "$3/${name}/90-image.cfg"`,
        )
      }
      const userData = join(folder, 'user-data')
      await writeFile(userData, '#cloud-config\nhostname: by-command\n')
      const provisioning = { mode: 'cloud-init', userData, metaData: null } as const
      const orders: readonly (readonly [Partial<FlashOrder>, string, string])[] = [
        [{ provisioning }, 'nocloud-net', await readFile(userData, 'utf8')],
        [{ firstBoot: SEED }, 'nocloud', SEED.cloudInit?.['user-data'] ?? ''],
      ]
      for (const [order, seed, expected] of orders) {
        await using disk = await createLoop({ megabytes: 1000, directory: folder })
        const outcome = await flash(image, disk.device, order)
        assert.match((outcome.warnings ?? []).join(), words)
        const said = await withRoot(disk.device, RUN)
        assert.match(said, /^datasource_list: \[ NoCloud(, None)? \]$/m)
        assert.match(said, `Using seeded data from /var/lib/cloud/seed/${seed}`)
        assert.match(said, /found local data from DataSourceNoCloud/)
        assert.not.match(said, /found local data from DataSource(?!NoCloud)/)
        assert.ok(said.endsWith(expected), said.slice(-300))
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  })
}

async function flash(image: string, target: string, order: Partial<FlashOrder>) {
  const { signal } = new AbortController()
  const base = { image, format: null, targets: [{ path: target }], options: WHOLE_DISK }
  const flasher = createFlasher({ env: process.env })
  const [outcome] = await flasher.flash({ ...base, ...order }, { signal, onEvent() {} })
  assert.ok(outcome?.kind === 'done', JSON.stringify(outcome))
  return outcome
}

test.run()
