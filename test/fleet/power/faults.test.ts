/** A hundred requests to a BMC that fails by a seed: each ends with a word that is true, none hangs. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { printable } from '#kit/foundation/printable.ts'
import { BmcSchema } from '#fleet/power/rules/bmc.ts'
import { actWith, createSubject, PXE } from '#test/support/power/acting.ts'
import { opened } from '#test/support/opened.ts'
import { BMC_USER, startRedfish, type Lies } from '#test/support/power/redfish-fake.ts'

const SEEDS = 100
const TIMES = { limit: 600, poll: 10, again: 120, rest: 10 }
const PATIENCE_MS = 6000

const test = suite('seeded faults')
const fake = opened(test, () => startRedfish())

/** Mulberry32: the same faults for the same seed. */
function createDice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * sides)
  }
}

const FAULTS: readonly ((dice: (sides: number) => number) => Partial<Lies>)[] = [
  (dice) => ({ lagMs: 20 + dice(900) }),
  (dice) => ({ task: dice(2) === 0 ? 'Completed' : 'Exception' }),
  (dice) => ({ lostResets: dice(8) }),
  (dice) => ({ earlyReadings: dice(2), lagMs: dice(200) }),
  (dice) => ({ lostBoots: dice(6) }),
  (dice) => ({ errors: dice(12) }),
  (dice) => ({ cuts: dice(12) }),
  (dice) => ({ cutsAfter: dice(8) }),
  (dice) => ({ maxSessions: dice(2) }),
  (dice) => ({ wantsEtag: true, weakEtags: dice(2) === 0 }),
  (dice) => ({ restartMs: dice(900) }),
  (dice) => ({ slowMs: dice(120) }),
  () => ({ hostile: true }),
  (dice) => ({ garbage: dice(6) }),
]

/** What is tried with a seed, after the faults of it have been put in place. */
function prepare(seed: number) {
  fake().reset()
  const dice = createDice(seed)
  for (let count = 1 + dice(3); count > 0; count -= 1) {
    Object.assign(fake().lies, FAULTS[dice(FAULTS.length)]?.(dice))
  }
  const action = (['on', 'off', 'restart'] as const)[dice(3)] ?? 'on'
  fake().state.isOn = action !== 'on'
  const boot = action !== 'off' && dice(2) === 0 ? PXE : null
  return { action, boot, told: `seed ${seed}, ${action}, ${JSON.stringify(fake().lies)}` }
}

async function tryOnce(seed: number): Promise<boolean> {
  const { action, boot, told } = prepare(seed)
  const started = performance.now()
  const bmc = BmcSchema.parse({ way: 'redfish', address: fake().address })
  const done = await actWith(createSubject(bmc, BMC_USER), { action, boot }, TIMES)
  assert.ok(performance.now() - started < PATIENCE_MS, `it took too long: ${told}`)
  if (done.ok) {
    assert.is(fake().state.isOn, action !== 'off', told)
    assert.is(done.value.state, action === 'off' ? 'off' : 'on', told)
    if (boot !== null) assert.is(fake().state.boot['BootSourceOverrideTarget'], 'Pxe', told)
    return true
  }
  const { asked, seen, fix } = done.refusal
  assert.match(asked, /^It(?:s power state)? was to be /, told)
  assert.ok(seen !== '' && fix.endsWith('.'), told)
  assert.is(printable(seen + fix), seen + fix, told)
  return false
}

test(`${SEEDS} seeds: done is done, and a failure says what was asked, seen and to be done`, async () => {
  let overcome = 0
  for (let seed = 1; seed <= SEEDS; seed += 1) if (await tryOnce(seed)) overcome += 1
  assert.ok(overcome > SEEDS / 2, `${overcome} of ${SEEDS} were overcome`)
})

test.run()
