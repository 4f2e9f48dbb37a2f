/** `pnpm bench:start`: how long the wizard takes to its first screen, and a flash to its first byte on the disk. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { FLASHER } from '#test/support/terminal/flasher.ts'
import { publishText } from './publish.ts'

const ROUNDS = 21
/** The most that the wizard may take of the sum of the other two. */
const LIMIT = 3
/** The most that a flash of a local raw image may take until it has written a byte: milliseconds. */
const FLASH_LIMIT = 200
const QUIT = '[q] quit'

interface Subject {
  readonly name: string
  readonly argv: readonly string[]
  /** What ends the measurement; null: the program's end. */
  readonly until: string | null
  readonly env?: Readonly<Record<string, string>>
}

/** In a terminal of its own, which `script` makes; milliseconds. */
function time({ argv, until, env = {} }: Subject): Promise<number> {
  const command = argv.map((word) => `'${word}'`).join(' ')
  const before = performance.now()
  const child = spawn('script', ['--quiet', '--command', `exec ${command}`, '/dev/null'], {
    env: { ...process.env, LANG: 'C.UTF-8', TERM: 'xterm', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let said = ''
  let seen: number | null = null
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
    if (until === null || seen !== null || !said.includes(until)) return
    seen = performance.now() - before
    // Ctrl-C, as soon as keys are read.
    setTimeout(() => child.stdin.write('\u0003'), 200)
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => {
      const ended = performance.now() - before
      if (until === null) resolve(ended)
      else if (seen === null) reject(new Error(`never showed ${until}: ${said}`))
      else resolve(seen)
    })
  })
}

/** How many writes a disk has taken so far (Documentation/block/stat.rst). */
async function countWrites(device: string): Promise<number> {
  const stat = await readFile(`/sys/block/${basename(device)}/stat`, 'utf8')
  return Number(stat.trim().split(/\s+/)[4])
}

/** Returns the milliseconds from the start of the program until the disk has taken its first write. */
async function timeFirstByte(image: string): Promise<number> {
  await using loop = await createLoop({ megabytes: 64 })
  const { device } = loop
  const writes = await countWrites(device)
  const argv = [FLASHER, 'flash', '--image', image, '--target', device, '--yes']
  const before = performance.now()
  const child = spawn(process.execPath, argv, { stdio: 'ignore' })
  const closed = new Promise<number | null>((resolve, reject) => {
    child.on('error', reject).on('close', resolve)
  })
  while (child.exitCode === null && (await countWrites(device)) === writes) await sleep(1)
  const milliseconds = performance.now() - before
  if ((await closed) !== 0) throw new Error(`the flash to ${device} failed`)
  return milliseconds
}

async function measureFirstByte(folder: string): Promise<number> {
  const image = join(folder, 'disk.img')
  await writeFile(image, makeDiskImage(32 * 2 ** 20))
  const found: number[] = []
  // The first round fills caches here as well.
  for (let round = 0; round <= ROUNDS; round += 1) {
    const milliseconds = await timeFirstByte(image)
    if (round > 0) found.push(milliseconds)
  }
  await rm(image)
  return median(found)
}

const median = (values: readonly number[]) =>
  values.toSorted((one, two) => one - two)[Math.floor(values.length / 2)] ?? Number.NaN

async function measure(subjects: readonly Subject[]): Promise<ReadonlyMap<string, number>> {
  const times = new Map<string, number[]>(subjects.map(({ name }) => [name, []]))
  // The first round fills caches, Node's compile cache among them.
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const subject of subjects) {
      const milliseconds = await time(subject)
      if (round > 0) times.get(subject.name)?.push(milliseconds)
    }
  }
  return new Map([...times].map(([name, values]) => [name, median(values)]))
}

const folder = await mkdtemp(join(tmpdir(), 'flasher-start-'))
try {
  await writeFile(join(folder, 'debian-13-amd64.img'), 'an image')
  const firstByte = await measureFirstByte(folder)
  const wizard = { argv: [process.execPath, FLASHER], until: QUIT }
  const medians = await measure([
    { name: 'images', ...wizard, env: { FLASHER_IMAGE_ROOT: folder } },
    { name: 'catalog', ...wizard, env: { FLASHER_IMAGE_ROOT: join(folder, 'none') } },
    { name: 'node', argv: [process.execPath, '-e', '0'], until: null },
    { name: 'lsblk', argv: ['lsblk', '--json'], until: null },
    { name: 'nothing', argv: ['true'], until: null },
  ])
  // What the terminal itself takes is in all of them.
  const of = (name: string) => (medians.get(name) ?? Number.NaN) - (medians.get('nothing') ?? 0)
  const least = of('node') + of('lsblk')
  const rows = [
    ['`node -e 0`', of('node')],
    ['`lsblk --json`', of('lsblk')],
    ['`flasher` to the list of images', of('images')],
    ['`flasher` to the choice of a catalog', of('catalog')],
  ] as const
  const table = rows.map(([name, ms]) => {
    const ratio = name.includes('flasher') ? `${(ms / least).toFixed(1)}x` : ''
    return `| ${name} | ${ms.toFixed(0)} ms | ${ratio} |`
  })
  const lines = [
    '| What | Median | Of Node and lsblk together |',
    '| --- | ---: | ---: |',
    ...table,
    `| \`flasher flash\` of a local raw image to the first byte on the disk | ${firstByte.toFixed(0)} ms | |`,
  ]
  publishText(
    'start',
    `${lines.join('\n')}\n\nMedians of ${ROUNDS} rounds, taken in turn, in a terminal.`,
  )
  console.log(lines.join('\n'))
  const worst = Math.max(of('images'), of('catalog')) / least
  if (worst > LIMIT) {
    console.error(`the first screen takes ${worst.toFixed(1)} times as long; ${LIMIT} is the most`)
    process.exitCode = 1
  }
  if (firstByte > FLASH_LIMIT) {
    console.error(`the first byte takes ${firstByte.toFixed(0)} ms; ${FLASH_LIMIT} is the most`)
    process.exitCode = 1
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}
