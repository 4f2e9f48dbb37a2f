/** pnpm bench:flash: flasher beside what a user would otherwise run, in one run, as ratios. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import {
  endBySignals,
  openBenchDevice,
  THROTTLE_MIB,
  type BenchDevice,
  type DeviceKind,
} from './devices.ts'
import { FORMATS, makeInputs, type Inputs } from './inputs.ts'
import { measureMany } from './many.ts'
import { measure, median, type Measured } from './measure.ts'
import {
  changedFrames,
  CONTESTS,
  contestsAgainst,
  FRAME_CONTESTS,
  type Contest,
  type Method,
} from './methods.ts'
import { publish } from './publish.ts'
import { renderChart, renderSummary, renderTable, type Row } from './table.ts'

const { values } = parseArgs({
  allowNegative: true,
  options: {
    runs: { type: 'string', default: '5' },
    mib: { type: 'string', default: '2048' },
    formats: { type: 'string', default: FORMATS.join(',') },
    devices: { type: 'string', default: 'fast,throttled,memory' },
    against: { type: 'string' },
    many: { type: 'boolean', default: true },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(`pnpm bench:flash [--runs 5] [--mib 2048] [--formats ${FORMATS.join(',')}]
  [--devices fast,throttled,memory] [--against CHECKOUT] [--no-many] [--write]

--against compares with the flasher of another checkout alone: before and after a change.

--no-many leaves out the rows with several disks at once.

--write puts table and chart into docs/performance.md. Needs root, qemu-utils, bmap-tools, lbzip2.`)
  process.exit(0)
}
if (process.geteuid?.() !== 0) {
  console.error('bench:flash writes to loop devices: run it as root')
  process.exit(3)
}

endBySignals()

const runs = Number(values.runs)
const cache =
  process.env['FLASHER_TEST_CACHE'] ||
  join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'flasher-test')
mkdirSync(cache, { recursive: true })
const formats = values.formats.split(',')
const inputs = await makeInputs(cache, Number(values.mib), formats)
const share = Math.round((inputs.nonZeroBytes / inputs.bytes) * 100)
const about = `${values.mib} MiB image, ${share} % of it data; median of ${runs} runs (xz and bz2: one), interleaved; throttled: ${THROTTLE_MIB} MiB/s`
console.log(about)

const contests =
  values.against === undefined ? [...CONTESTS, ...FRAME_CONTESTS] : contestsAgainst(values.against)
const rows: Row[] = []
for (const kind of values.devices.split(',') as DeviceKind[]) {
  await using device = await openBenchDevice(kind, cache, inputs.bytes + (64 << 20))
  for (const contest of contests) {
    const isWanted = formats.includes(contest.format) && contest.devices.includes(kind)
    if (isWanted) rows.push(...(await compete(contest, device)))
  }
}
if (values.many) rows.push(...(await measureMany(cache, inputs, runs)))
const cancelSeconds = await measureCancel()
console.log(renderTable(rows))
console.log(`cancel to a closed device: ${cancelSeconds.toFixed(2)} s`)
if (values.write) {
  const words = `${about}. Cancel to a closed device: ${cancelSeconds.toFixed(2)} s.`
  const shown = 'Time as a ratio to the usual command'
  publish(
    'flash',
    words,
    renderChart(rows),
    shown,
    renderSummary(rows.filter(({ device }) => device !== 'memory')),
  )
}

/** Every method in turn, as often as there are runs; each on a disk full of something else. */
async function compete(contest: Contest, device: BenchDevice): Promise<Row[]> {
  const measured = new Map<Method, Measured[]>(contest.methods.map((method) => [method, []]))
  const most = Math.min(runs, contest.mostRuns ?? runs)
  for (let run = 0; run < most; run += 1) {
    for (const method of contest.methods) {
      await prepare(method, device)
      const result = await measure(device.within(method.script(inputs, device.node)), device.node)
      measured.get(method)?.push(result)
      if (method.leavesStale !== true) compare(inputs, device.node, method)
      console.error(
        `${contest.format} ${device.kind} ${method.name}: ${result.seconds.toFixed(2)} s`,
      )
    }
  }
  const [first] = contest.methods
  const base = (first && measured.get(first)) ?? []
  return contest.methods.map((method) => {
    const own = measured.get(method) ?? []
    const pairs = (of: (one: Measured) => number) =>
      median(own.map((one, run) => of(one) / of(base[run] ?? one)))
    const middle = (of: (one: Measured) => number) => median(own.map(of))
    return {
      format: contest.format,
      device: device.kind,
      method: method.name,
      median: {
        seconds: middle((one) => one.seconds),
        cpuSeconds: middle((one) => one.cpuSeconds),
        peakMib: middle((one) => one.peakMib),
        writtenMib: middle((one) => one.writtenMib),
      },
      ratio: pairs((one) => one.seconds),
      cpuRatio: pairs((one) => one.cpuSeconds),
      bar: method.bar?.[device.kind] ?? null,
    }
  })
}

/** A disk that holds the image was flashed with it. */
async function prepare({ holds }: Method, device: BenchDevice) {
  await device.refill(inputs.stale)
  if (holds === undefined) return
  const argv = ['flash', '--image', inputs.file.frames, '--target', device.node, '--yes']
  execFileSync(process.execPath, ['runtime/bin/flasher.mjs', ...argv], { stdio: 'ignore' })
  if (holds === 'image') return
  for (const frame of changedFrames(inputs)) {
    const seek = `seek=${frame * 1024 + 7}`
    const from = ['if=/dev/urandom', `of=${device.node}`, 'bs=4096', 'count=1']
    execFileSync('dd', [...from, seek, 'oflag=direct', 'conv=notrunc', 'status=none'])
  }
}

function compare({ raw, bytes }: Inputs, node: string, { name }: Method) {
  try {
    execFileSync('cmp', ['-n', String(bytes), raw, node])
  } catch (cause) {
    throw new Error(`${name} did not write what the image holds`, { cause })
  }
}

/** From SIGINT in the middle of a write to the end of the process, the worst of three. */
async function measureCancel(): Promise<number> {
  await using device = await openBenchDevice('throttled', cache, inputs.bytes + (64 << 20))
  let worst = 0
  for (let run = 0; run < 3; run += 1) {
    const argv = `runtime/bin/flasher.mjs flash --image ${inputs.file.zst} --target ${device.node} --yes --progress none`
    const script = device.within(`exec ${process.execPath} ${argv}`)
    const child = spawn('bash', ['-c', script], { stdio: 'ignore' })
    await pause(2000)
    const before = performance.now()
    child.kill('SIGINT')
    await new Promise((resolve) => {
      child.once('close', resolve)
    })
    worst = Math.max(worst, (performance.now() - before) / 1000)
  }
  return worst
}
