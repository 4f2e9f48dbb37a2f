/** Several disks at once against one: 4 throttled ones, and 8 in memory. */
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { $ } from 'zx'
import { giveBackAtEnd, THROTTLE_MIB } from './devices.ts'
import type { Inputs } from './inputs.ts'
import { measure, median, type Measured } from './measure.ts'
import type { Row } from './table.ts'

interface ManyContest {
  readonly kind: 'throttled' | 'memory'
  readonly disks: number
  readonly bar: number
}

const MANY: readonly ManyContest[] = [
  { kind: 'throttled', disks: 4, bar: 1.15 },
  { kind: 'memory', disks: 8, bar: 1.3 },
]

interface Way {
  readonly name: string
  /** A shell command line that writes the image to all of the nodes. */
  readonly script: (inputs: Inputs, nodes: readonly string[]) => string
  /** Its time with several disks to its time with one; null: only to compare with. */
  readonly bar: number | null
}

/** Zeros are left out: the disks hold nothing else there. */
const DD = 'bs=4M iflag=fullblock oflag=direct conv=sparse,fsync status=none'

/** Where copying is all that a disk costs: what it costs without us. */
const TEE: Way = {
  name: 'zstd -dc | tee | dd',
  // The last dd holds the pipe of the others open: it ends when all have.
  script({ file }, [first = '', ...others]) {
    const tee = others.map((node) => `>(dd of=${node} ${DD})`).join(' ')
    return `zstd -dc ${file.zst} | tee ${tee} | dd of=${first} ${DD}`
  },
  bar: null,
}

const flasher = (name: string, option: string, bar: number): Way => ({
  name,
  script({ file }, nodes) {
    const targets = nodes.map((node) => `--target ${node}`).join(' ')
    return `${process.execPath} runtime/bin/flasher.mjs flash --image ${file.zst} ${targets} --yes --progress none ${option}`
  },
  bar,
})

const listWays = ({ kind, bar }: ManyContest): readonly Way[] => [
  flasher('flasher --no-verify', '--no-verify', bar),
  flasher('flasher (read back)', '', bar),
  ...(kind === 'memory' ? [TEE] : []),
]

/** `folder`: on the disk that the throttled ones lie on. */
export async function measureMany(folder: string, inputs: Inputs, runs: number): Promise<Row[]> {
  const rows: Row[] = []
  for (const contest of MANY) rows.push(...(await compete(contest, folder, inputs, runs)))
  return rows
}

async function compete(contest: ManyContest, folder: string, inputs: Inputs, runs: number) {
  const { kind, disks } = contest
  const making = makeDisks(contest, folder, inputs.bytes + (64 << 20))
  giveBackAtEnd(making)
  await using made = await making
  const counts = [1, disks]
  const rows: Row[] = []
  for (const { name, script, bar } of listWays(contest)) {
    const measured = counts.map((): Measured[] => [])
    for (let run = 0; run < runs; run += 1) {
      for (const [index, count] of counts.entries()) {
        const nodes = made.nodes.slice(0, count)
        const command = made.within(script(inputs, nodes))
        measured[index]?.push(await measure(command, nodes[0] ?? ''))
        for (const node of nodes)
          execFileSync('cmp', ['-n', String(inputs.bytes), inputs.raw, node])
      }
    }
    const [base = []] = measured
    rows.push(
      ...counts.map((count, index): Row => {
        const own = measured[index] ?? []
        const middle = (of: (one: Measured) => number) => median(own.map(of))
        const pairs = (of: (one: Measured) => number) =>
          median(own.map((one, run) => of(one) / of(base[run] ?? one)))
        return {
          format: 'zst',
          device: kind,
          method: `${name}, ${count} disk${count === 1 ? '' : 's'}`,
          median: {
            seconds: middle((one) => one.seconds),
            cpuSeconds: middle((one) => one.cpuSeconds),
            peakMib: middle((one) => one.peakMib),
            writtenMib: middle((one) => one.writtenMib),
          },
          ratio: pairs((one) => one.seconds),
          cpuRatio: pairs((one) => one.cpuSeconds),
          bar: count === 1 ? null : bar,
        }
      }),
    )
  }
  return rows
}

const GROUPS = '/sys/fs/cgroup/blkio'

async function makeDisks({ kind, disks }: ManyContest, folder: string, bytes: number) {
  await using made = new AsyncDisposableStack()
  const run = $({ quiet: true })
  const at = await mkdtemp(join(folder, 'flasher-many-'))
  made.defer(() => rm(at, { recursive: true, force: true }))
  if (kind === 'memory') {
    await run`mount -t tmpfs -o size=${disks * bytes + (64 << 20)} tmpfs ${at}`
    made.defer(async () => void (await run`umount ${at}`))
  }
  const nodes: string[] = []
  for (let disk = 0; disk < disks; disk += 1) {
    const backing = join(at, `disk${disk}`)
    await run`truncate -s ${bytes} ${backing}`
    const directIo = kind === 'memory' ? 'off' : 'on'
    const node = (await run`losetup --find --show --direct-io=${directIo} ${backing}`).stdout.trim()
    made.defer(async () => void (await run`losetup -d ${node}`))
    nodes.push(node)
  }
  const group = kind === 'throttled' ? await throttle(nodes) : null
  if (group !== null) made.defer(() => rmdir(group).catch(() => undefined))
  const given = made.move()
  let giving: Promise<void> | null = null
  return {
    nodes,
    within: (script: string) =>
      group === null ? script : `echo $$ > ${group}/cgroup.procs; ${script}`,
    // Once, whoever asks first, and awaited by all.
    [Symbol.asyncDispose]: () => (giving ??= given.disposeAsync()),
  }
}

/** Each disk has the whole rate for itself. */
async function throttle(nodes: readonly string[]): Promise<string> {
  const group = join(GROUPS, `flasher-many-${process.pid}`)
  await mkdir(group)
  for (const node of nodes) {
    const numbers = (await $({ quiet: true })`lsblk -dno MAJ:MIN ${node}`).stdout.trim()
    for (const what of ['read_bps_device', 'write_bps_device']) {
      const rate = `${numbers} ${THROTTLE_MIB * 1024 * 1024}`
      await writeFile(join(group, `blkio.throttle.${what}`), rate)
    }
  }
  return group
}
