import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  createDisks,
  createTogether,
  listOtherMounts,
  listPools,
  readOwnMounts,
  listBlocks,
  listBtrfs,
  readSysFacts,
} from '#engine/disk/disks.ts'
import { Fault, type FaultCode } from '#kit/foundation/fault.ts'
import { createShell, type Finished, type Shell } from '#kit/host/shell.ts'
import {
  createMachine,
  createShellTwin,
  listMachineBlocks,
  LIVE,
  type Machine,
  SERVER,
} from '#test/support/server/machines.ts'

const test = suite('disks')

async function faultOf(promise: Promise<unknown>): Promise<{ code: FaultCode; message: string }> {
  try {
    await promise
  } catch (error) {
    if (error instanceof Fault) return { code: error.code, message: error.message }
    throw error
  }
  throw new Error('no fault')
}
const fixed = (answer: Partial<Finished>) =>
  createDisks({ shell: createShellTwin(answer.stdout ?? '', answer) })

test('lists the disks of a machine', async () => {
  await using machine = await createMachine(SERVER)
  const rows = await createDisks(machine).list()
  assert.equal(
    rows.map(({ path }) => path),
    ['sda', 'sdb', 'sdc', 'sdd', 'sde', 'sdf', 'sdg', 'cciss/c0d0', 'nvme0n1'].map(
      (name) => `/dev/${name}`,
    ),
  )
  assert.equal(rows.at(-1), {
    path: '/dev/nvme0n1',
    size: '1.9T',
    type: 'disk',
    vendor: null,
    model: 'Samsung SSD 990 PRO 2TB',
    serial: 'S6Z2NJ0W000001',
    tran: 'nvme',
    removable: false,
    readonly: false,
    mountpoints: ['/boot/efi', '/', '[SWAP]'],
    size_bytes: 2_048_408_248_320,
    in_use_by: [
      'this system',
      '/boot/efi',
      '/',
      '/dev/mapper/luks (encrypted)',
      '/dev/mapper/vg-root (LVM)',
      '/dev/mapper/vg-swap (LVM)',
      'swap',
    ],
  })
  await using live = await createMachine(LIVE)
  const found = await createDisks(live).list()
  assert.equal(
    found.map(({ path }) => path),
    ['/dev/sda', '/dev/sdb'],
  )
  // It distinguishes two equal disks, and lsblk does not know it without udev.
  assert.is(rows.find(({ path }) => path === '/dev/sdc')?.serial, 'FROM-SYS')
})

test('lists the disks that a flash looks at: no memory, floppy, firmware, nor what was never connected', async () => {
  const machine: Machine = {
    blocks: {
      sda: { dev: '8:0' },
      nbd0: { dev: '43:0', sectors: 0 },
      zram0: { dev: '253:0' },
      ram0: { dev: '1:0' },
      fd0: { dev: '2:0', sectors: 8 },
      mtdblock0: { dev: '31:0' },
      mmcblk0: { dev: '179:0' },
      mmcblk0boot0: { dev: '179:8' },
      sdb: { dev: '8:16', sectors: 0 },
    },
    lsblk: [
      { name: 'zram0', type: 'disk' },
      { name: 'nbd0', type: 'disk' },
      { name: 'ram0', type: 'disk' },
      { name: 'fd0', type: 'disk', rm: true },
      { name: 'mtdblock0', type: 'disk' },
      { name: 'mmcblk0', type: 'disk' },
      { name: 'mmcblk0boot0', type: 'disk' },
      { name: 'sda', type: 'disk' },
      { name: 'sdb', type: 'disk', rm: true },
      { name: 'gone', type: 'disk' },
    ],
    mountinfo: '',
  }
  await using tree = await createMachine(machine)
  const disks = createDisks(tree)
  const listed = (await disks.list()).map(({ path }) => path)
  assert.equal(listed, ['/dev/mmcblk0', '/dev/sda', '/dev/sdb'])
  assert.equal(
    (await disks.survey()).map(({ path }) => path),
    listed,
  )
})

test('lists what the lsblk of this machine says', async () => {
  const shell = createShell({ env: process.env })
  if (!(await shell.has('lsblk'))) return
  for (const row of await createDisks({ shell }).list()) {
    assert.is(row.type, 'disk')
    assert.match(row.path, /^\/dev\//)
    assert.match(row.size ?? '', /^\d+([.,]\d+)?[BKMGTPE]$/)
  }
})

test('asks once more for the columns of an old lsblk', async () => {
  const asked: string[] = []
  const shell: Shell = {
    ...createShellTwin(''),
    async run(argv) {
      const columns = argv.at(-1) ?? ''
      asked.push(columns)
      return columns.includes('MOUNTPOINTS')
        ? { exitCode: 1, stdout: '', stderr: 'lsblk: unknown column: MOUNTPOINTS,TRAN' }
        : { exitCode: 0, stdout: '{"blockdevices":[]}', stderr: '' }
    },
  }
  assert.equal(await createDisks({ shell }).list(), [])
  assert.is(asked.length, 2)
})

test('lsblk missing, failing or gone mad is a fault', async () => {
  const shell = createShell({ env: {} })
  const without: Shell = { ...shell, run: ([tool, ...rest]) => shell.run([`no-${tool}`, ...rest]) }
  assert.is((await faultOf(createDisks({ shell: without }).list())).code, 'tool-missing')
  assert.equal(await faultOf(fixed({ exitCode: 1, stderr: 'lsblk: failed\n' }).list()), {
    code: 'tool-failed',
    message: 'lsblk: lsblk: failed',
  })
  assert.equal(await faultOf(fixed({ exitCode: 32 }).list()), {
    code: 'tool-failed',
    message: 'lsblk: exit code 32',
  })
  assert.is((await faultOf(fixed({ stdout: 'Segmentation fault' }).list())).code, 'tool-failed')
})

test('a path that leads to no block device is reported, not thrown', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-paths-'))
  // lsblk is not even asked.
  const disks = fixed({ exitCode: 1 })
  try {
    const file = join(folder, 'file')
    await writeFile(file, 'x')
    for (const path of ['', '/nope', `${file}/below`, 'a\0b', `/${'x'.repeat(5000)}`])
      assert.equal(await disks.probe(path, null), { path, exists: false, device: null })
    for (const path of [file, folder, '/dev/null', '/dev/fd'])
      assert.equal(await disks.probe(path, file), { path, exists: true, device: null })
  } finally {
    await rm(folder, { recursive: true })
  }
})

const byName = (a: { readonly name: string }, b: { readonly name: string }) =>
  a.name < b.name ? -1 : 1

test('reads the block devices of /sys', async () => {
  for (const each of [SERVER, LIVE]) {
    await using machine = await createMachine(each)
    const blocks = (await listBlocks(machine.sys)).toSorted(byName)
    const expected = listMachineBlocks(each).toSorted(byName)
    assert.equal(blocks, expected)
  }
})

test('reads what /sys knows of a disk, a partition, a bare one', async () => {
  await using machine = await createMachine(SERVER)
  const nvme = {
    sectorBytes: 4096,
    readonly: false,
    diskseq: 1,
    serial: null,
    dmUuid: null,
    zeros: { loop: null, writeZeroesMaxBytes: 131072, discardMaxBytes: 2199023255040 },
  }
  assert.equal(await readSysFacts(machine.sys, { name: 'nvme0n1', partition: null }), {
    ...nvme,
    sizeBytes: 4000797360 * 512,
  })
  const partition = { of: 'nvme0n1', start: 0, end: 1 }
  assert.equal(await readSysFacts(machine.sys, { name: 'nvme0n1p1', partition }), {
    ...nvme,
    sizeBytes: 1048576 * 512,
  })
  const usb = await readSysFacts(machine.sys, { name: 'sdc', partition: null })
  assert.is(usb.serial, 'FROM-SYS')
  assert.is(usb.readonly, true)
  assert.is(usb.sectorBytes, 512)
  const bare = await readSysFacts(machine.sys, { name: 'sda', partition: null })
  assert.is(bare.diskseq, null)
  assert.is(bare.sizeBytes, 2 ** 30)
  const path = await readSysFacts(machine.sys, { name: 'dm-3', partition: null })
  assert.is(path.dmUuid, 'mpath-3600')
})

test('reads btrfs file systems with devices, and no other folder', async () => {
  await using machine = await createMachine(LIVE)
  assert.equal(await listBtrfs(machine.sys), [])
  for (const path of ['f00d/devices/sda', 'f00d/devices/sdb', 'features', 'empty/devices'])
    await mkdir(join(machine.sys, 'fs/btrfs', path), { recursive: true })
  const [found, ...others] = await listBtrfs(machine.sys)
  assert.is(found?.id, 'f00d')
  assert.equal(found?.devices.toSorted(), ['sda', 'sdb'])
  assert.equal(others, [])
})

test('names the ZFS pools that are imported', async () => {
  await using machine = await createMachine(SERVER)
  await writeFile(join(machine.proc, 'spl/kstat/zfs/arcstats'), '')
  assert.equal(await listPools(machine.proc), ['tank'])
  assert.equal(await listPools('/nope'), [])
})

test('without /proc or /sys there is no answer', async () => {
  assert.is((await faultOf(readOwnMounts('/nope'))).code, 'tool-missing')
  assert.is((await faultOf(listBlocks('/nope'))).code, 'tool-missing')
  assert.equal(await listOtherMounts('/nope'), [])
})

test('mount tables of others: one process for each namespace, nothing twice', async () => {
  const tables = await listOtherMounts('/proc')
  const pids = tables.map(({ process: pid }) => pid)
  assert.is(new Set(pids).size, pids.length)
  assert.not(pids.includes(null))
})

/** Counts its calls; each ends when `finish` says so. */
function createCounted() {
  const started: string[] = []
  const ends: PromiseWithResolvers<number>[] = []
  const act = (argument: string) => {
    started.push(argument)
    const end = Promise.withResolvers<number>()
    ends.push(end)
    return end.promise
  }
  return { act, started, ends, call: createTogether(act) }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('whoever asks while one is under way shares the next', async () => {
  const { call, started, ends } = createCounted()
  const first = call('a')
  await turn()
  const others = [call('a'), call('a'), call('a')]
  await turn()
  assert.equal(started, ['a'])
  ends[0]?.resolve(1)
  assert.is(await first, 1)
  await turn()
  assert.equal(started, ['a', 'a'])
  ends[1]?.resolve(2)
  assert.equal(await Promise.all(others), [2, 2, 2])
})

test('only the same is shared', async () => {
  const { call, started, ends } = createCounted()
  const calls = [call('a'), call('b')]
  await turn()
  ends[0]?.resolve(1)
  await turn()
  ends[1]?.resolve(2)
  assert.equal(await Promise.all(calls), [1, 2])
  assert.equal(started, ['a', 'b'])
})

test('a failure is for those that shared it; the next call is a new one', async () => {
  const { call, ends } = createCounted()
  const shared = [call('a'), call('a')]
  await turn()
  const later = call('a')
  ends[0]?.reject(new Error('no answer'))
  for (const { status } of await Promise.allSettled(shared)) assert.is(status, 'rejected')
  await turn()
  ends[1]?.resolve(2)
  assert.is(await later, 2)
})

test.run()
