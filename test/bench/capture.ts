/** pnpm bench:capture: file systems that have lived are captured, and every file of each is looked for in its image. */
import { parseArgs } from 'node:util'
import { LIVED_KINDS, planLife, renderLife } from '#test/support/capture/lived/life.ts'
import { roundTrip } from '#test/support/capture/lived/round-trip.ts'

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    kind: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  console.log(`pnpm bench:capture [--count 200] [--seed 1] [--kind ${LIVED_KINDS.join('|')}]

--seed is the first one; each file system has its own, and is made again with --seed N --count 1.
Needs root, and the packages of pnpm test.`)
  process.exit(0)
}
if (process.geteuid?.() !== 0) {
  console.error('bench:capture uses loop devices: run it as root')
  process.exit(3)
}

const kind = LIVED_KINDS.find((one) => one === values.kind)
const first = Number(values.seed)
const totals = { files: 0, lost: 0, damaged: 0, failed: 0, whole: 0 }
for (let seed = first; seed < first + Number(values.count); seed += 1) {
  const life = planLife(seed, kind === undefined ? {} : { kind })
  try {
    const { lost, files, isDamaged, whole } = await roundTrip(life)
    totals.files += files
    totals.lost += lost.length
    totals.damaged += Number(isDamaged)
    totals.whole += Number(whole !== null)
    const reading = whole === null ? 'by map' : `whole: ${whole}`
    console.log(`${renderLife(life)}; ${files} lines, ${lost.length} lost; ${reading}`)
    if (isDamaged) console.log('  DAMAGED in the image')
    lost.slice(0, 3).forEach((line) => console.log(`  LOST ${line}`))
  } catch (thrown) {
    totals.failed += 1
    console.log(`${renderLife(life)}: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
  }
}
console.log(
  `seeds ${first} to ${first + Number(values.count) - 1}: ${totals.files} lines of names and files, ${totals.lost} lost; ` +
    `${totals.damaged} damaged, ${totals.whole} read whole, ${totals.failed} could not be made`,
)
if (totals.lost > 0 || totals.damaged > 0 || totals.failed > 0) process.exitCode = 1
