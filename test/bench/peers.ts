/** pnpm bench:peers: an image to many machines at once, plainly over HTTP and in a chain of nginx, alternating. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtempDisposable, readFile, rm, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createLab, type Lab, type LabHost } from '#test/support/net/rack.ts'
import { readTreeUse } from './process-tree.ts'

const around = (folder: string, body: string) => `daemon off;
master_process off;
user root;
pid ${folder}/pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  sendfile on;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  ${body}
}
`

/** Serves the files of a folder. */
const renderServer = (folder: string, files: string): string =>
  around(folder, `server { listen 8080; root ${files}; }`)

interface ChainLink {
  readonly folder: string
  /** Who is asked first, then those that are asked where it is away; the server is the last one. */
  readonly before: readonly [string, ...string[]]
  /** The pieces that a machine keeps for those behind it, in MiB. */
  readonly windowMib: number
  readonly pieceMib: number
  /** How long the first piece may take through all machines before it, in seconds. */
  readonly patience: number
}

/** Hands on the pieces that it read itself. */
function renderMachine({ folder, before, windowMib, pieceMib, patience }: ChainLink): string {
  const [first, ...others] = before
  const backups = others.map((each) => `server ${each}:8080 backup max_fails=1 fail_timeout=60s;`)
  return around(
    folder,
    `proxy_cache_path ${folder}/window keys_zone=window:1m max_size=${windowMib}m
      inactive=10m use_temp_path=off manager_sleep=100ms;
  upstream before {
    server ${first}:8080 max_fails=1 fail_timeout=60s;
    ${backups.join('\n    ')}
    keepalive 4;
  }
  server {
    listen 8080;
    location / {
      slice ${pieceMib}m;
      proxy_pass http://before;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Range $slice_range;
      proxy_cache window;
      proxy_cache_key $uri$slice_range;
      proxy_cache_valid 206 1h;
      proxy_cache_lock on;
      proxy_cache_lock_age ${patience}s;
      proxy_cache_lock_timeout ${patience * 2}s;
      proxy_connect_timeout 1s;
      proxy_read_timeout ${patience}s;
      proxy_next_upstream error timeout http_502 http_504;
    }
  }`,
  )
}

interface PeerOrder {
  readonly engine: 'http' | 'chain'
  readonly machines: number
  readonly mib: number
  readonly mbit: number
  /** What a machine hands on at once, in MiB. */
  readonly pieceMib: number
  /** How many machines, spread over the chain, are switched off when half of the time of one went by. */
  readonly killed: number
  /** A folder in memory, with the image as `files/image`. */
  readonly folder: string
}

interface PeerResult {
  /** Seconds of each machine that was left, the fastest first. */
  readonly seconds: readonly number[]
  /** What the server sent, in images. */
  readonly egress: number
  /** What all processes of the run took, in CPU seconds. */
  readonly cpuSeconds: number
  /** The part of the host's processors that nobody used. */
  readonly idle: number
  /** The most that the nginx of a machine held, in MiB. */
  readonly residentMib: number
}

const WINDOW_MIB = 48

/** Rejects where a machine got another byte, or nothing for ten minutes. */
async function runPeers(order: PeerOrder): Promise<PeerResult> {
  const { engine, machines, mbit, mib, killed, folder } = order
  const usedBefore = readTreeUse(process.pid).cpuSeconds
  await using lab = createLab(machines, mbit)
  const image = await readFile(join(folder, 'files/image'))
  const sha256 = createHash('sha256').update(image).digest('hex')
  await startServer(lab, folder)
  const chain = engine === 'chain' ? await startChain(lab, order) : []
  const before = { sent: lab.server.sentBytes(), times: readTimes() }
  const began = performance.now()
  const victims = new Set(
    Array.from({ length: killed }, (_, at) => Math.floor(((at + 0.5) * machines) / killed)),
  )
  const readers = lab.machines.map((machine) => startReader(machine, order, lab, image.length))
  const killing = kill(victims, readers, chain, (mib * 8 * 1.05 * 1000) / mbit / 2)
  const ended = await Promise.all(
    readers.map(async (reader, at) => {
      const found = await reader.digest
      const seconds = (performance.now() - began) / 1000
      if (victims.has(at)) return null
      if (found !== sha256) throw new Error(`machine ${at + 1} read ${found || 'nothing'}`)
      return seconds
    }),
  )
  await killing
  const use = readTreeUse(process.pid)
  const nginx = chain.map(({ pid }) => (pid === undefined ? 0 : readTreeUse(pid).residentBytes))
  const seconds = ended.filter((each) => each !== null).toSorted((a, b) => a - b)
  return {
    seconds,
    egress: (lab.server.sentBytes() - before.sent) / image.length,
    cpuSeconds: use.cpuSeconds - usedBefore,
    idle: idleSince(before.times),
    residentMib: Math.max(0, ...nginx) / 2 ** 20,
  }
}

async function startNginx(host: LabHost, folder: string, conf: string) {
  await mkdir(folder, { recursive: true })
  const path = join(folder, 'nginx.conf')
  await writeFile(path, conf)
  return host.spawn(['/usr/sbin/nginx', '-c', path, '-p', folder])
}

async function startServer({ server }: Lab, folder: string) {
  const home = join(folder, 'server')
  await startNginx(server, home, renderServer(home, join(folder, 'files')))
  await sleep(500)
}

/**
 * The first piece goes through all machines before this one, each of which has it whole before it hands
 * it on and looks for it every half second.
 */
const decidePatience = (hops: number, pieceSeconds: number) =>
  Math.ceil(3 + 1.5 * hops * (pieceSeconds + 0.5))

/** Each machine asks the one before it, then the two before that, then the server. */
async function startChain(
  { server, machines }: Lab,
  { folder, pieceMib, mbit }: Pick<PeerOrder, 'folder' | 'pieceMib' | 'mbit'>,
) {
  const line = [server, ...machines].map(({ address }) => address)
  const started = await Promise.all(
    machines.map((machine, at) => {
      const home = join(folder, `machine-${at}`)
      const patience = decidePatience(at + 1, (pieceMib * 8.4) / mbit)
      const near = line.slice(Math.max(1, at - 2), at + 1).toReversed()
      const [first = server.address, ...others] = near
      const before = [first, ...others, ...(near.length === 0 ? [] : [server.address])] as const
      return startNginx(
        machine,
        home,
        renderMachine({ folder: home, before, windowMib: WINDOW_MIB, pieceMib, patience }),
      )
    }),
  )
  await sleep(500)
  return started
}

/** Reads piece by piece, each again until it is there, and throws the bytes away but for their digest. */
const SCRIPT = `at=0; piece=$4
while [ "$at" -lt "$2" ]; do
  to=$((at + piece - 1)); [ "$to" -ge "$2" ] && to=$(($2 - 1))
  want=$((to - at + 1))
  until [ "$(stat -c %s "$3" 2>/dev/null)" = "$want" ]; do
    curl -sf --max-time 600 -r "$at-$to" -o "$3" "$1" || sleep 0.2
  done
  cat "$3"; rm "$3"
  at=$((to + 1))
done | sha256sum`

function startReader(
  machine: LabHost,
  { engine, pieceMib }: Pick<PeerOrder, 'engine' | 'pieceMib'>,
  lab: Lab,
  bytes: number,
) {
  const from = engine === 'chain' ? '127.0.0.1' : lab.server.address
  const scratch = `/dev/shm/flasher-peers-${process.pid}-${machine.address}`
  const url = `http://${from}:8080/image`
  const words = ['read', url, String(bytes), scratch, String(pieceMib << 20)]
  const child = machine.spawn(['sh', '-c', SCRIPT, ...words])
  let said = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const digest = once(child, 'exit').then(() => said.split(' ')[0] ?? '')
  return { child, digest }
}

async function kill(
  victims: ReadonlySet<number>,
  readers: readonly ReturnType<typeof startReader>[],
  chain: readonly Awaited<ReturnType<typeof startNginx>>[],
  afterMs: number,
) {
  if (victims.size === 0) return
  await sleep(afterMs)
  for (const at of victims) {
    readers[at]?.child.kill('SIGKILL')
    chain[at]?.kill('SIGKILL')
  }
}

const readTimes = () => cpus().map(({ times }) => times)

function idleSince(before: ReturnType<typeof readTimes>): number {
  const now = readTimes()
  const sum = (of: (times: (typeof now)[number]) => number) =>
    now.reduce((all, times, at) => all + of(times) - of(before[at] ?? times), 0)
  const all = sum(({ user, nice, sys, idle, irq }) => user + nice + sys + idle + irq)
  return sum(({ idle }) => idle) / all
}

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
