/** pnpm bench:peers: an image to many machines at once, plainly over HTTP and in a chain of nginx, alternating. */
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtempDisposable, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runPeers, type PeerOrder, type PeerResult } from './peers/peer-run.ts'

const { values } = parseArgs({
  options: {
    machines: { type: 'string', default: '16' },
    mib: { type: 'string', default: '128' },
    mbit: { type: 'string', default: '50' },
    runs: { type: 'string', default: '5' },
    killed: { type: 'string', default: '0' },
    piece: { type: 'string', default: '4' },
    engines: { type: 'string', default: 'http,chain' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(`pnpm bench:peers [--machines 16] [--mib 128] [--mbit 50] [--runs 5] [--killed 0] [--piece 4] [--engines http,chain]

As root, with nginx, curl, ip and tc. --mbit is the rate of each link, both ways: lower it until
plain HTTP leaves at least 30 % of the processors idle, else the table shows this host alone.
--piece is the size in MiB of what a machine hands on at once. --killed switches off so many machines at half of the time of one.`)
  process.exit(0)
}

const order = {
  mib: Number(values.mib),
  mbit: Number(values.mbit),
  pieceMib: Number(values.piece),
}
const machines = Number(values.machines)
const killed = Number(values.killed)
await using folder = await mkdtempDisposable('/dev/shm/flasher-peers-')
await mkdir(join(folder.path, 'files'))
await writeFile(join(folder.path, 'files/image'), randomBytes(order.mib << 20))

async function measure(row: Omit<PeerOrder, 'folder' | keyof typeof order>): Promise<PeerResult> {
  const result = await runPeers({ ...order, ...row, folder: folder.path })
  for (let at = 0; at < row.machines; at += 1) {
    await rm(join(folder.path, `machine-${at}`), { recursive: true, force: true })
  }
  return result
}

const two = (value: number) => value.toFixed(2)
const medianOf = (sorted: readonly number[]) => sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
const one = await measure({ engine: 'http', machines: 1, killed: 0 })
const alone = one.seconds.at(-1) ?? Number.NaN
console.log(`One machine: ${two(alone)} s (${order.mib} MiB at ${order.mbit} Mbit/s), idle ${two(one.idle)}

| Engine | Run | Last to one | Median to one | Server egress, images | CPU s | MiB a machine | Idle |
|---|---:|---:|---:|---:|---:|---:|---:|`)
const engines = values.engines.split(',').filter((name) => name === 'http' || name === 'chain')
for (let run = 1; run <= Number(values.runs); run += 1) {
  for (const engine of engines) {
    const { seconds, egress, cpuSeconds, residentMib, idle } = await measure({
      engine,
      machines,
      killed,
    })
    const last = two((seconds.at(-1) ?? Number.NaN) / alone)
    const cells = [engine, String(run), last, two(medianOf(seconds) / alone), two(egress)]
    console.log(`| ${[...cells, two(cpuSeconds), two(residentMib), two(idle)].join(' | ')} |`)
  }
}
