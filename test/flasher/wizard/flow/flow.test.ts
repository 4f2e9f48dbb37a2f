import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  next,
  openState,
  choiceOf,
  SCREENS,
  stepsOf,
  type NextScreen,
  type ScreenName,
  type WizardState,
  type WizardStep,
} from '#flasher/wizard/flow/flow.ts'
import type { DiskChoice } from '#flasher/order/rules/flash-choice.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'
import type { ChosenImage } from '#flasher/order/rules/flash-choice.ts'

const test = suite('wizard flow')

const IMAGE: ChosenImage = {
  name: 'debian.img',
  location: '/images/debian.img',
  format: 'img',
  sizeBytes: 5,
  sha256: null,
  ref: null,
}
const DISK: DiskChoice = {
  path: '/dev/sda',
  identity: { serial: 'S1', wwn: null, sizeBytes: 500, diskseq: 7 },
  words: 'Samsung, serial S1, 500 B',
}
const FAILED: FlashOutcome = {
  kind: 'failed',
  code: 'write-failed',
  reason: 'the disk does not take it',
  hint: null,
  leaves: 'nothing',
}
const START = openState({
  screen: 'catalog',
  catalog: null,
  notice: 'the server does not answer',
  identity: { mac: null, server: null, address: null },
})
const go = (steps: readonly WizardStep[], from: WizardState = START) =>
  steps.reduce<NextScreen>(
    (state, step) => (typeof state === 'string' ? state : next(state, step)),
    from,
  )
const screenOf = (state: NextScreen) => (typeof state === 'string' ? state : state.screen)

const noticeOf = (state: NextScreen) => (typeof state === 'string' ? null : state.notice)

const WAY: readonly WizardStep[] = [
  { step: 'source', source: 'http://lab/catalog.toml' },
  { step: 'image', image: IMAGE },
  { step: 'disks', disks: [DISK] },
  { step: 'flash', template: null },
]

test('the straight way: catalog, image, disk, confirm, flash', () => {
  const screens = WAY.map((_, index) => screenOf(go(WAY.slice(0, index + 1))))
  assert.equal(screens, ['image', 'disk', 'confirm', 'flash'])
})
test('back leads one step back, from a flash that ended to the disks, with the same image', () => {
  const rows: readonly (readonly [readonly WizardStep[], string])[] = [
    [WAY.slice(0, 1), 'catalog'],
    [WAY.slice(0, 2), 'image'],
    [WAY.slice(0, 3), 'disk'],
    [[...WAY, { step: 'ended', end: FAILED, notice: null, bootEntry: null }], 'disk'],
    [[{ step: 'ask-source' }], 'catalog'],
    [[], 'catalog'],
  ]
  for (const [steps, screen] of rows) {
    assert.is(screenOf(go([...steps, { step: 'back' }])), screen)
  }
  const after = go([
    ...WAY,
    { step: 'ended', end: FAILED, notice: null, bootEntry: null },
    { step: 'back' },
  ])
  assert.ok(typeof after !== 'string')
  assert.equal([after.image, after.disks, after.end], [IMAGE, [], null])
})
test('a reason stays until the operator goes on; looking again is not going on', () => {
  assert.is(noticeOf(go([{ step: 'refresh' }])), START.notice)
  assert.is(noticeOf(go([{ step: 'ask-source' }])), null)
  const told = go([
    ...WAY,
    { step: 'ended', end: FAILED, notice: 'the server was not told', bootEntry: null },
  ])
  assert.equal([screenOf(told), noticeOf(told)], ['failed', 'the server was not told'])
})
test('quit and reboot end it anywhere', () => {
  for (const step of ['quit', 'reboot'] as const) assert.is(go([...WAY, { step }]), step)
})
test('only what is chosen is flashed', () => {
  assert.is(choiceOf(START), null)
  const chosen = go(WAY)
  assert.ok(typeof chosen !== 'string')
  const choice = {
    image: IMAGE,
    disk: '/dev/sda',
    identity: DISK.identity,
    unattended: false,
  }
  assert.equal(choiceOf(chosen), [choice])
  const other = { ...DISK, path: '/dev/sdb' }
  const both = next(chosen, { step: 'disks', disks: [DISK, other] })
  assert.ok(typeof both !== 'string')
  assert.equal(choiceOf(both), [choice, { ...choice, disk: '/dev/sdb' }])
})
test('every screen belongs to a step that the header counts', () => {
  const screens = Object.keys(SCREENS).filter((name): name is ScreenName => name in SCREENS)
  for (const screen of screens) assert.ok(stepsOf(screen).includes(SCREENS[screen].step))
})
test('whatever is pressed, nothing is chosen on a screen that comes before the choice', () => {
  const steps = fc.constantFrom<WizardStep>(
    ...WAY,
    { step: 'back' },
    { step: 'refresh' },
    { step: 'ask-source' },
    { step: 'ended', end: FAILED, notice: null, bootEntry: null },
  )
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 12 }), (taken) => {
      const state = go(taken)
      if (typeof state === 'string') return
      if (['catalog', 'image'].includes(state.screen)) assert.is(state.image, null)
      if (['catalog', 'image', 'disk'].includes(state.screen)) assert.equal(state.disks, [])
    }),
  )
})
test('what became of the boot entry stays on the screen after the flash, and no longer', () => {
  const bootEntry = 'UEFI: the firmware boots it once, next (Boot0003).'
  const failed = go([...WAY, { step: 'ended', end: FAILED, notice: null, bootEntry }])
  assert.ok(typeof failed !== 'string')
  assert.is(failed.bootEntry, bootEntry)
  const back = go([
    ...WAY,
    { step: 'ended', end: FAILED, notice: null, bootEntry },
    { step: 'back' },
  ])
  assert.ok(typeof back !== 'string')
  assert.is(back.bootEntry, null)
})

const FILE = { kind: 'file', path: '/images/a.img.zst' } as const
const UPLOAD = {
  kind: 'upload',
  base: 'http://c/captures',
  name: 'a.img.zst',
  token: null,
} as const
const CAPTURE_WAY: readonly WizardStep[] = [
  { step: 'capture' },
  { step: 'capture-disk', disk: DISK, name: 'a.img.zst' },
  { step: 'capture-destination', destination: FILE },
  { step: 'captured', end: { kind: 'cancelled', reason: 'cancelled', hint: null } },
]

test('a capture: disk, destination, confirm, end; a token only for an upload', () => {
  const screens = CAPTURE_WAY.map((_, index) => screenOf(go(CAPTURE_WAY.slice(0, index + 1))))
  assert.equal(screens, [
    'capture-disk',
    'capture-destination',
    'capture-confirm',
    'capture-failed',
  ])
  const asked = go([
    ...CAPTURE_WAY.slice(0, 2),
    { step: 'capture-destination', destination: UPLOAD },
  ])
  assert.is(screenOf(asked), 'capture-token')
  const typed = { step: 'capture-destination', destination: { ...UPLOAD, token: 'x' } } as const
  assert.ok(typeof asked !== 'string')
  assert.is(screenOf(next(asked, typed)), 'capture-confirm')
  const end = { kind: 'done', storedBytes: 1, imageBytes: 2, sha256: '', seconds: 1 } as const
  const done = { step: 'captured', end: { ...end, identity: { kind: 'absent' } } } as const
  assert.is(screenOf(go([...CAPTURE_WAY.slice(0, 3), done])), 'capture-done')
})
test('back from a capture leads to the screen where it began, and nothing of it is left', () => {
  const back = { step: 'back' } as const
  const image = go([{ step: 'source', source: null }, { step: 'capture' }, back])
  assert.ok(typeof image !== 'string')
  assert.equal([image.screen, image.capture], ['image', null])
  const steps = [...CAPTURE_WAY, back, back, back]
  const screens = [1, 2, 3].map((count) => screenOf(go(steps.slice(0, 4 + count))))
  assert.equal(screens, ['capture-confirm', 'capture-destination', 'capture-disk'])
  const disks = go(steps)
  assert.ok(typeof disks !== 'string')
  assert.equal(disks.disks, [])
  const catalog = next(disks, back)
  assert.ok(typeof catalog !== 'string')
  assert.equal([catalog.screen, catalog.capture], ['catalog', null])
})

test.run()
