/** Workflows on real file systems: what they get, how they end, and that nothing of them stays. */
import { constants } from 'node:fs'
import { lstat, mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createFlashedDisk, listTop, makeFolders } from '#test/support/disk/flashed-disk.ts'
import { catchFault, createFixture } from '#test/support/disk/provisioning-fixture.ts'

const EXT4 = ['mkfs.ext4', '-q']
const BTRFS = ['mkfs.btrfs', '-q']
const run = $({ quiet: true, verbose: false })

const flows = suite('cijoe')

flows('gets the largest volume, the arguments in order, and a configuration', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([
    { megabytes: 8, mkfs: EXT4 },
    { megabytes: 24, mkfs: EXT4 },
    { megabytes: 16, mkfs: EXT4 },
  ])
  await fixture.installCijoe(`
    pwd > ${fixture.at('said')}; for word; do echo "$word"; done >> ${fixture.at('said')}
    cat "$3" >> ${fixture.at('said')}; echo made > "$FLASHER_ROOTFS/by-the-workflow"
    mkdir "$FLASHER_ROOTFS/dev" && mount --bind /dev "$FLASHER_ROOTFS/dev"
    setsid sleep 1000 < "$FLASHER_ROOTFS/by-the-workflow" > /dev/null 2>&1 &`)
  await fixture.provisioner.check(fixture.cijoe)
  await fixture.provisioner.apply(fixture.cijoe, disk.device)
  await fixture.assertLeftAsFound(disk)
  const [cwd, monitor, dash, config, workflow, ...toml] = (
    await readFile(fixture.at('said'), 'utf8')
  ).split('\n')
  assert.equal(
    [cwd, monitor, dash, workflow],
    [process.cwd(), '--monitor', '-c', fixture.at('flow.yaml')],
  )
  assert.match(config ?? '', fixture.at('tmp'))
  assert.equal(toml, ['[cijoe.workflow]', 'fail_fast = true', ''])
  assert.ok((await listTop(disk.part(2))).includes('by-the-workflow'))
})

flows('gets the root subvolume of btrfs, and the configuration that was given', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([
    {
      megabytes: 128,
      mkfs: BTRFS,
      async fill(top) {
        for (const name of ['@', '@home']) await run`btrfs subvolume create ${join(top, name)}`
        await makeFolders('@/etc')(top)
      },
    },
  ])
  await fixture.installCijoe(
    `ls "$FLASHER_ROOTFS" > ${fixture.at('said')}; echo "$3" >> ${fixture.at('said')}`,
  )
  await fixture.provisioner.apply({ ...fixture.cijoe, config: 'some.toml' }, disk.device)
  assert.is(await readFile(fixture.at('said'), 'utf8'), 'etc\nsome.toml\n')
  await fixture.assertLeftAsFound(disk)
})

flows('fails with the exit code of the workflow', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([{ megabytes: 16, mkfs: EXT4 }])
  await fixture.installCijoe('exit 7')
  const fault = await catchFault(fixture.provisioner.apply(fixture.cijoe, disk.device))
  assert.is(fault.code, 'provision-failed')
  assert.match(fault.message, /cijoe workflow exited 7/)
  await fixture.assertLeftAsFound(disk)
})

flows('refuses a largest volume that cannot be mounted', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([{ megabytes: 16, mkfs: EXT4 }, { megabytes: 32 }])
  await fixture.installCijoe('exit 0')
  const fault = await catchFault(fixture.provisioner.apply(fixture.cijoe, disk.device))
  assert.match(fault.message, `${disk.part(2)} (no file system, 33.6 MB): nothing in it`)
  await fixture.assertLeftAsFound(disk)
})

flows('ends on abort, whatever it started and however deaf it is', async () => {
  for (const script of ['sleep 1000', 'trap "" INT TERM; setsid sleep 1000 & sleep 999 & wait']) {
    await using fixture = await createFixture()
    await using disk = await createFlashedDisk([{ megabytes: 16, mkfs: EXT4 }])
    await fixture.installCijoe(
      `echo x > "$FLASHER_ROOTFS/x"; touch ${fixture.at('started')}; ${script}`,
    )
    const abort = new AbortController()
    const work = catchFault(
      fixture.provisioner.apply(fixture.cijoe, disk.device, { signal: abort.signal }),
    )
    await waitFor(fixture.at('started'), work)
    abort.abort()
    assert.is((await work).code, 'cancelled')
    await fixture.assertLeftAsFound(disk)
    const late = await catchFault(
      fixture.provisioner.apply(fixture.cloudInit, disk.device, { signal: abort.signal }),
    )
    assert.is(late.code, 'cancelled')
  }
})

flows('speaks on standard error as it goes, and leaves nothing when we are killed', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([{ megabytes: 16, mkfs: EXT4 }])
  await fixture.installCijoe(`echo spoken; touch ${fixture.at('started')}; sleep 1000`)
  const runtime = new URL('../../../runtime/', import.meta.url).href
  const program = `
    import { createProvisioner } from '${runtime}engine/flash/provisioner.ts'
    import { createShell } from '${runtime}kit/host/shell.ts'
    const env = process.env
    const provisioner = createProvisioner({ shell: createShell({ env }), env })
    await provisioner.apply(${JSON.stringify(fixture.cijoe)}, '${disk.device}')`
  const child = run({
    env: { ...process.env, ...fixture.env },
    nothrow: true,
  })`${process.execPath} --input-type=module-typescript --eval ${program}`
  await waitFor(fixture.at('started'), child)
  process.kill(child.pid ?? 0, 'SIGKILL')
  const { stdout, stderr } = await child
  assert.equal([stdout, stderr], ['', 'spoken\n'])
  await waitUntilFree(disk.part(1))
  // Its empty mount point is all that a killed process cannot remove.
  await rm(fixture.at('tmp'), { recursive: true })
  await mkdir(fixture.at('tmp'))
  await fixture.assertLeftAsFound(disk)
})

const DEADLINE_MS = 60_000
const pause = () => new Promise<'not yet'>((done) => setTimeout(done, 20, 'not yet'))

/** Fails when the work ends before: then nothing will ever make the file. */
async function waitFor(path: string, work: Promise<unknown>) {
  const deadline = performance.now() + DEADLINE_MS
  const ended = work.then((outcome) => `ended before: ${String(outcome)}`, String)
  while ((await lstat(path).catch(() => null)) === null) {
    const news =
      performance.now() > deadline ? 'it takes too long' : await Promise.race([ended, pause()])
    if (news !== 'not yet') throw new Error(`${path} is not there: ${news}`)
  }
}

async function waitUntilFree(node: string) {
  const deadline = performance.now() + DEADLINE_MS
  for (;;) {
    const file = await open(node, constants.O_RDONLY | constants.O_EXCL).catch(() => null)
    if (file !== null) return file.close()
    if (performance.now() > deadline) throw new Error(`${node} is still in use`)
    await pause()
  }
}

flows.run()
