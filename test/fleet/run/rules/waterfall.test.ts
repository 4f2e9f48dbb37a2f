import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { divideRun } from '#fleet/run/rules/waterfall.ts'
import { createProof, nextProof } from '#fleet/proof/rules/proof.ts'
import { createRun, type Run } from '#engine/inventory/rules/run.ts'
import { MAC } from '#test/support/server/machine-fixture.ts'
import { originOf } from '#test/support/server/runs.ts'

const test = suite('where the time of a run went')

const at = (seconds: number) =>
  new Date(Date.parse('2026-11-26T08:00:00.000Z') + seconds * 1000).toISOString()

const STAMPS = {
  power_on_at: at(0),
  script_at: at(40),
  kernel_at: at(41),
  initrd_at: at(43),
  reset_at: null,
  start_at: null,
  system_at: null,
  plan_at: at(60),
}
const ENDED = {
  result: 'done',
  phase: 'done',
  ended_at: at(130),
  steps: [
    { phase: 'started', at: at(61) },
    { phase: 'write', at: at(63) },
    { phase: 'verify', at: at(110) },
    { phase: 'done', at: at(130) },
  ],
} as const
const runOf = (fields: Partial<Run> = {}): Run => ({
  ...createRun('run-00000001', { ...originOf(MAC), stamps: STAMPS }, at(61)),
  ...ENDED,
  ...fields,
})
const booted = nextProof(
  nextProof(createProof(at(130), 1800, at(60)), { kind: 'contact' }, at(170)),
  { kind: 'call', issued: at(60) },
  at(200),
)
const partsOf = (run: Run) =>
  divideRun(run)?.bars.map(({ part, seconds }) => `${part} ${seconds}`) ?? null

test('from power-on to the proof each second has an owner', () => {
  const run = runOf({ proof: booted })
  assert.equal(partsOf(run), [
    'firmware 40',
    'loader 1',
    'kernel 2',
    'live 17',
    'plan 1',
    'started 2',
    'write 47',
    'verify 20',
    'restart 40',
    'first-boot 30',
  ])
  const whole = divideRun(run)
  assert.equal([whole?.seconds, whole?.unattributed_seconds], [200, 0])
})

test('a gap between the stamps of two parts that do not meet belongs to nobody', () => {
  const stamps = { ...STAMPS, kernel_at: null }
  const whole = divideRun(runOf({ stamps }))
  assert.equal(partsOf(runOf({ stamps }))?.slice(0, 3), [
    'firmware 40',
    'unattributed 3',
    'live 17',
  ])
  assert.is(whole?.unattributed_seconds, 3)
})

test('without a contact in between, restart and first boot are one part; without a proof neither is shown', () => {
  const direct = nextProof(
    createProof(at(130), 1800, at(60)),
    { kind: 'call', issued: at(60) },
    at(200),
  )
  assert.is(partsOf(runOf({ proof: direct }))?.at(-1), 'restart-and-boot 70')
  assert.is(partsOf(runOf())?.at(-1), 'verify 20')
})

test('stamps of another boot own nothing', () => {
  const stamps = { ...STAMPS, power_on_at: at(50), script_at: at(300) }
  assert.equal(partsOf(runOf({ stamps }))?.[0], 'kernel 2')
  assert.is(partsOf(runOf({ stamps: null }))?.[0], 'started 2')
})

test('a run that goes on is not divided', () => {
  assert.is(divideRun(runOf({ result: null })), null)
  assert.is(divideRun(runOf({ started_at: null })), null)
})

test('what the live system told of its start divides it, and a reset stands for who turned it on', () => {
  const told = { ...STAMPS, start_at: at(46), system_at: at(55) }
  assert.equal(partsOf(runOf({ stamps: told }))?.slice(0, 7), [
    'firmware 40',
    'loader 1',
    'kernel 2',
    'initrd 3',
    'boot 9',
    'system 5',
    'plan 1',
  ])
  const byHand = { ...told, power_on_at: null, reset_at: at(10) }
  assert.equal(partsOf(runOf({ stamps: byHand }))?.[0], 'firmware 30')
  // The act of the BMC comes first, where both are known.
  assert.equal(partsOf(runOf({ stamps: { ...told, reset_at: at(10) } }))?.[0], 'firmware 40')
  // Without the files that it asked for, only the time up to its kernel belongs to no part.
  const lost = divideRun(runOf({ stamps: { ...told, kernel_at: null, initrd_at: null } }))
  assert.is(lost?.unattributed_seconds, 6)
})

test.run()
