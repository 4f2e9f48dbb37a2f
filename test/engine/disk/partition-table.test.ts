import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { rereadPartitions } from '#engine/disk/udev.ts'
import { createShell, type Finished, type Shell } from '#kit/host/shell.ts'

const test = suite('partition table')

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
