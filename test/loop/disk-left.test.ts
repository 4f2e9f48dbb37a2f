/** Writes fail at every step of a flash: what is said of the disk is what it holds then. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk, scripted } from '#test/support/disk/faulty-disk.ts'
import { makeStale, readDisk } from '#test/support/disk/writer.ts'

const test = suite('what a failed flash leaves')
const MIB = 1 << 20
const SIZE = 3
const IMAGE = makeDiskImage(SIZE * MIB)
const context = { folder: '', image: '' }

test.before(async () => {
  context.folder = await mkdtemp(join(tmpdir(), 'flasher-left-'))
  context.image = join(context.folder, 'disk.img')
  await writeFile(context.image, IMAGE)
})
test.after(() => rm(context.folder, { recursive: true }))

/** A write that fails: it reaches these bytes, once the flash has come so far. */
interface Step {
  readonly name: string
  readonly from: number
  readonly to: number
  /** 0: nothing was written; 1: the first sectors were cleared; 2: the image's content was begun. */
  readonly after: 0 | 1 | 2
  /** The sentence that is right then, by its place in PROMISES. */
  readonly says: number
}

const STEPS: readonly Step[] = [
  { name: 'the first sectors', from: 0, to: 4096, after: 0, says: 0 },
  { name: 'the rest of the first MiB', from: 4096, to: MIB, after: 1, says: 1 },
  { name: 'the backup table', from: (SIZE - 1) * MIB, to: SIZE * MIB, after: 1, says: 1 },
  { name: 'the content', from: MIB, to: (SIZE - 1) * MIB, after: 1, says: 1 },
  { name: "the image's last MiB", from: (SIZE - 1) * MIB, to: SIZE * MIB, after: 2, says: 1 },
  { name: "the image's first MiB", from: 4096, to: MIB, after: 2, says: 1 },
  { name: "the image's first sectors", from: 0, to: 4096, after: 2, says: 2 },
]

/** Which writes fail: the step's own alone, or all from there on; and how many of them. */
interface Failing {
  readonly isGone: boolean
  readonly most: number
}

/** While `flag` is there, writes fail as `step` has it. */
const FAILS = `if [ -e "{}/flag" ]; then
  read -r from to after gone most < "{}/step"; n=$(wc -c < "{}/reached")
  if { [ -e "{}/failed" ] && [ "$gone" = true ]; } || { [ "$n" -ge "$after" ] && [ "$4" -ge "$from" ] && [ "$4" -lt "$to" ]; }; then
    printf x >> "{}/failed"
    if [ "$(wc -c < "{}/failed")" -le "$most" ]; then echo EIO broken >&2; exit 1; fi
  fi
  if [ "$4" = 0 ] && [ "$n" = 0 ]; then printf 1 > "{}/reached"; fi
  if [ "$4" -ge ${MIB} ] && [ "$4" -lt ${(SIZE - 1) * MIB} ]; then printf 12 > "{}/reached"; fi
fi`

async function createStepDisk() {
  const scripts = { pwrite: FAILS, zero: FAILS, trim: FAILS }
  const disk = await createFaultyDisk({ nbdkit: scripted(SIZE, scripts), sectorBytes: 512 })
  const pathOf = (name: string) => join(disk.folder, name)
  return {
    async flash({ from, to, after }: Step, { isGone, most }: Failing) {
      disk.setFlag(false)
      const stale = await makeStale(disk.device)
      await rm(pathOf('failed'), { force: true })
      await writeFile(pathOf('reached'), '')
      await writeFile(pathOf('step'), `${from} ${to} ${after} ${isGone} ${most}\n`)
      disk.setFlag(true)
      const order = {
        image: context.image,
        format: null,
        targets: [{ path: disk.device }],
        options: WHOLE_DISK,
      }
      const options = { signal: new AbortController().signal, onEvent: () => undefined }
      const [end] = await createFlasher({ env: process.env }).flash(order, options)
      return { end, stale }
    },
    read: () => readDisk(disk.device),
    [Symbol.asyncDispose]: () => disk[Symbol.asyncDispose](),
  }
}

/** What each sentence promises of the disk. */
const PROMISES: readonly (readonly [RegExp, (disk: Buffer, stale: Buffer) => boolean])[] = [
  [/No write to .* was confirmed/, (disk, stale) => disk.equals(stale)],
  [
    /has no partition table and cannot boot/,
    (disk) => disk.subarray(0, 4096).every((b) => b === 0),
  ],
  [/may boot .* Do not boot from it/, (disk, stale) => !disk.equals(stale)],
]

const EVER = 1_000_000

async function tryStep(
  disk: Awaited<ReturnType<typeof createStepDisk>>,
  step: Step,
  failing: Failing,
) {
  const { end, stale } = await disk.flash(step, failing)
  if (end === undefined || end.kind === 'done') throw new Error(`it was written: ${step.name}`)
  const said = PROMISES.findIndex(([words]) => words.test(end.leaves))
  assert.is(said, step.says, `${step.name}: ${end.leaves}`)
  assert.ok(PROMISES[said]?.[1](await disk.read(), stale), `${step.name}: ${end.leaves}`)
}

for (const [name, failing] of [
  ['a disk that takes no write any more', { isGone: true, most: EVER }],
  ['a disk that takes no write in one place', { isGone: false, most: EVER }],
] as const) {
  test(`${name}, at each step of a flash`, async () => {
    await using disk = await createStepDisk()
    for (const step of STEPS) await tryStep(disk, step, failing)
  })
}

test.run()
