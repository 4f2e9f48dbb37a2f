/** A part of a disk as a block device: a failure to begin is an error like any other. */
import { spawn } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openLoopPart } from '#engine/disk/loop-part.ts'
import { rereadPartitions } from '#engine/disk/disks.ts'
import { createShell, type Finished, type Shell } from '#kit/host/shell.ts'
import { faultOf } from '#test/support/collect.ts'

const test = suite('parts of a disk')

test('a program that cannot be started is a Fault, and ends nothing else', async () => {
  const shell = {
    ...createShell({ env: process.env }),
    pipe: () => spawn('/nowhere/setsid', { stdio: ['pipe', 'pipe', 'pipe'] }),
  }
  const disk = { node: '/dev/null', fd: 0, sectorBytes: 512 }
  const fault = await faultOf(() => openLoopPart(shell, disk, { offset: 0, bytes: 512 }))
  assert.is(fault.code, 'tool-failed')
  assert.match(fault.message, /^no loop device: .*ENOENT/)
})

test('a tool that fails is quoted, however late its words come', async () => {
  const script = 'exec >&-; sleep 0.2; echo losetup: no free device >&2; exit 1'
  const shell = {
    ...createShell({ env: process.env }),
    pipe: () => spawn('sh', ['-c', script], { stdio: ['pipe', 'pipe', 'pipe'] }),
  }
  const disk = { node: '/dev/null', fd: 0, sectorBytes: 512 }
  const fault = await faultOf(() => openLoopPart(shell, disk, { offset: 0, bytes: 512 }))
  assert.match(fault.message, /^no loop device: losetup: no free device$/)
})

/** A shell whose tools say what a test wants, and which remembers what was run. */
function createTwin(answer: (argv: readonly string[], count: number) => Partial<Finished>) {
  const ran: string[] = []
  const shell: Shell = {
    ...createShell({ env: {} }),
    has: () => Promise.resolve(true),
    run(argv) {
      ran.push(argv.join(' '))
      const finished = { exitCode: 0, stdout: '', stderr: '', ...answer(argv, ran.length) }
      return Promise.resolve(finished)
    },
  }
  return { ran, shell }
}

const REREAD = 'blockdev --rereadpt /dev/x'
const REST = ['partx --update /dev/x', 'udevadm settle --timeout=10']

test('has the kernel read the table, and the nodes made', async () => {
  const { ran, shell } = createTwin(() => ({}))
  await rereadPartitions(shell, '/dev/x')
  assert.equal(ran, [REREAD, ...REST])
})
test('tries again while somebody holds the disk', async () => {
  const busy = {
    exitCode: 1,
    stderr: 'blockdev: ioctl error on BLKRRPART: Device or resource busy\n',
  }
  const { ran, shell } = createTwin((_, count) => (count < 3 ? busy : {}))
  await rereadPartitions(shell, '/dev/x')
  assert.equal(ran, [REREAD, REREAD, REREAD, ...REST])
})
test('does not wait for a disk whose kernel reads no tables', async () => {
  const unable = { exitCode: 1, stderr: 'blockdev: ioctl error on BLKRRPART: Invalid argument\n' }
  const { ran, shell } = createTwin((argv) => (argv[0] === 'blockdev' ? unable : {}))
  await rereadPartitions(shell, '/dev/x')
  assert.equal(ran, [REREAD, ...REST])
})

test.run()
