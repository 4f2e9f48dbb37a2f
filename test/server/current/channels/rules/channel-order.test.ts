/** By which image a machine goes that has a channel: resolved when it is armed, and left alone by every move. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { hasFlashOrder } from '#server/current/machines/rules/disarming.ts'
import {
  channelOf,
  toWire,
  type Machine,
  parseRecord,
} from '#server/current/machines/rules/machine.ts'
import { createMachineLine, type LineDependencies } from '#server/current/machine-line.ts'
import {
  entryOf,
  MAC,
  OTHER_REF,
  PXE_RULES,
  REF,
  X86_SETS,
} from '#test/support/server/machine-fixture.ts'

const test = suite('channels of machines')
const NOW = '2026-11-27T01:00:00.000Z'
const BY = { actor: 'operator', ip: null, at: NOW }
const CONTACT = {
  now: NOW,
  baseUrl: 'http://10.0.0.1:8080',
  ip: '10.0.0.2',
  bearer: null,
  query: {},
}

function open(channels: Readonly<Record<string, string>> = { stable: REF }) {
  const points = new Map(Object.entries(channels))
  const site: LineDependencies = {
    findImage: (ref) => entryOf(ref),
    findTemplate: () => null,
    findChannel: (name) => points.get(name) ?? null,
    sets: () => X86_SETS,
    settings: () => PXE_RULES,
    placeOf: () => null,
    hasRun: () => false,
    bootKey: { sign: () => 's'.repeat(43), verify: () => true },
    uploadKey: { sign: () => 'u'.repeat(43) },
    cacheUrl: () => 'http://127.0.0.1:8081',
  }
  const line = createMachineLine(site)
  const held: { machine: Machine | null } = { machine: null }
  const machine = () => {
    assert.ok(held.machine)
    return held.machine
  }
  return {
    line,
    points,
    machine,
    isThere: () => held.machine !== null,
    /** Null: it was done; else why it was refused. */
    put(body: unknown): string | null {
      const made = line.parseUpsert(body, held.machine, { mac: MAC, by: BY })
      if (made.ok) held.machine = made.value
      return made.ok ? null : made.refusal.map(({ msg }) => msg).join(' ')
    },
    act(action: string, parameters: unknown): string | null {
      const made = line.actions[action]?.apply(machine(), parameters, BY)
      if (made?.ok === true) held.machine = made.value.machine
      return made === undefined || made.ok ? null : made.refusal
    },
    shown: () => [machine().bty_image_ref, channelOf(machine())],
  }
}

const ARMED = { boot_mode: 'flasher-flash-once', target_disk_serial: 'S1' }
const IDLE = { boot_mode: 'ipxe-exit', target_disk_serial: 'S1' }

test('a channel stands in place of an image, and a machine without one looks as before', () => {
  const lab = open()
  assert.is(lab.put({ ...IDLE, channel: 'stable' }), null)
  assert.equal(lab.shown(), [REF, 'stable'])
  assert.is(toWire(lab.machine())['channel'], 'stable')
  const stored = parseRecord(JSON.parse(JSON.stringify(lab.machine())))
  assert.equal(stored, lab.machine())
  assert.is(lab.put({ ...IDLE, bty_image_ref: OTHER_REF }), null)
  assert.equal(lab.shown(), [OTHER_REF, null])
  assert.not.ok('channel' in toWire(lab.machine()))
  const { channel: _, ...older } = lab.machine()
  assert.is(parseRecord(older)?.channel, null)
})

test('each arming resolves it, and nothing else does', () => {
  const lab = open()
  lab.put({ ...IDLE, channel: 'stable' })
  lab.points.set('stable', OTHER_REF)
  assert.is(lab.put({ ...IDLE, channel: 'stable', labels: ['lab'] }), null)
  assert.equal(lab.shown(), [REF, 'stable'], 'an edit of labels')
  assert.is(lab.act('label', { add: ['x'] }), null)
  assert.equal(lab.shown(), [REF, 'stable'])
  assert.is(lab.act('mode', { boot_mode: 'flasher-flash-once' }), null)
  assert.equal(lab.shown(), [OTHER_REF, 'stable'], 'the mode arms it')
  lab.points.set('stable', REF)
  assert.is(lab.act('mode', { boot_mode: 'flasher-flash-once' }), null)
  assert.is(lab.put({ ...ARMED, channel: 'stable' }), null)
  assert.equal(lab.shown(), [OTHER_REF, 'stable'], 'it was armed before')
  assert.is(lab.act('flash', null), null)
  assert.equal(lab.shown(), [REF, 'stable'], 'Flash again')
  lab.points.set('stable', OTHER_REF)
  assert.is(lab.act('image', { channel: 'stable' }), null)
  assert.equal(lab.shown(), [OTHER_REF, 'stable'], 'assigned anew')
})

test('an image that is named pins it, also the one that the channel points to', () => {
  const lab = open()
  lab.put({ ...ARMED, channel: 'stable' })
  assert.is(lab.act('image', { bty_image_ref: REF }), null)
  assert.equal(lab.shown(), [REF, null])
  lab.put({ ...ARMED, channel: 'stable' })
  assert.is(lab.put({ ...ARMED, bty_image_ref: REF }), null)
  assert.equal(lab.shown(), [REF, 'stable'], 'clients that know no channels keep it')
  assert.is(lab.put({ ...ARMED, bty_image_ref: REF, channel: null }), null)
  assert.equal(lab.shown(), [REF, null])
})

test('who expects another image than the channel has is refused, as is a channel that is gone', () => {
  const lab = open()
  lab.put({ ...IDLE, bty_image_ref: REF })
  assert.match(
    lab.put({ ...ARMED, channel: 'stable', bty_image_ref: OTHER_REF }) ?? '',
    'another image',
  )
  assert.match(
    lab.act('image', { channel: 'stable', bty_image_ref: OTHER_REF }) ?? '',
    'another image',
  )
  assert.match(lab.act('image', { channel: 'edge' }) ?? '', 'no channel edge')
  assert.equal(lab.shown(), [REF, null])
  assert.is(lab.act('image', { channel: 'stable', bty_image_ref: REF }), null)
  lab.points.delete('stable')
  assert.match(lab.act('mode', { boot_mode: 'flasher-flash-once' }) ?? '', 'no channel stable')
  assert.is(lab.act('label', { add: ['x'] }), null)
  assert.equal(lab.shown(), [REF, 'stable'])
})

test('a mode that arms is refused where the channel points to another image than was shown', () => {
  const lab = open()
  lab.put({ ...IDLE, channel: 'stable' })
  const arm = (bty_image_ref: string) =>
    lab.act('mode', { boot_mode: 'flasher-flash-once', channel: 'stable', bty_image_ref })
  lab.points.set('stable', OTHER_REF)
  assert.match(arm('ef'.repeat(32)) ?? '', 'another image')
  assert.equal([lab.machine().boot_mode, ...lab.shown()], ['ipxe-exit', REF, 'stable'])
  assert.is(arm(OTHER_REF), null)
  assert.equal(
    [lab.machine().boot_mode, ...lab.shown()],
    ['flasher-flash-once', OTHER_REF, 'stable'],
  )
})

const refs = fc.constantFrom(REF, OTHER_REF)
const names = fc.constantFrom('stable', 'edge')
const bodies = fc.record(
  {
    boot_mode: fc.constantFrom('flasher-flash-once', 'flasher-flash-always', 'ipxe-exit'),
    target_disk_serial: fc.constantFrom('S1', 'S2', null),
    bty_image_ref: refs,
    channel: fc.constantFrom('stable', 'edge', null),
  },
  { requiredKeys: ['boot_mode'] },
)
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('move' as const), name: names, ref: refs }),
    fc.record({ do: fc.constant('remove' as const), name: names }),
    fc.record({ do: fc.constant('put' as const), body: bodies }),
    fc.record({
      do: fc.constant('act' as const),
      action: fc.constantFrom('flash', 'label', 'disarm', 'lock', 'unlock'),
    }),
    fc.record({ do: fc.constant('image' as const), channel: names }),
    fc.record({
      do: fc.constant('mode' as const),
      mode: fc.constantFrom('flasher-flash-once', 'flasher-flash-always', 'ipxe-exit'),
    }),
  ),
  { minLength: 1, maxLength: 30 },
)

type Step = typeof steps extends fc.Arbitrary<readonly (infer One)[]> ? One : never

function take(lab: ReturnType<typeof open>, step: Step): void {
  switch (step.do) {
    case 'move':
      lab.points.set(step.name, step.ref)
      break
    case 'remove':
      lab.points.delete(step.name)
      break
    case 'put':
      lab.put(step.body)
      break
    case 'act':
      lab.act(step.action, step.action === 'label' ? { add: ['x'] } : null)
      break
    case 'image':
      lab.act('image', { channel: step.channel })
      break
    case 'mode':
      lab.act('mode', { boot_mode: step.mode })
  }
}

test('no history of moves and edits changes the image of an armed machine but by arming it anew', () => {
  fc.assert(
    fc.property(steps, (history) => {
      const lab = open()
      lab.put({ ...IDLE, bty_image_ref: REF })
      for (const step of history) {
        const before = lab.machine()
        const planned = JSON.stringify(lab.line.decidePlan(before, CONTACT).plan)
        take(lab, step)
        const after = lab.machine()
        if (step.do === 'move' || step.do === 'remove') {
          assert.is(after, before)
          assert.is(JSON.stringify(lab.line.decidePlan(after, CONTACT).plan), planned)
        }
        const isOther = after.bty_image_ref !== before.bty_image_ref
        if (isOther) assert.is.not(after.cycle, before.cycle, 'another image is another order')
        const name = channelOf(after)
        // What begins to be armed by a channel has the image that this points to at that moment.
        if (name !== null && hasFlashOrder(after) && after.cycle !== before.cycle) {
          assert.is(after.bty_image_ref, lab.points.get(name))
        }
      }
    }),
  )
})

test.run()
