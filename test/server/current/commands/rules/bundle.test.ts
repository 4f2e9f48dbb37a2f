/** Export bundles: as the specification lays them out, there and back, and what is refused. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  buildBundle,
  buildBundleMachine,
  importMachine,
  parseBundle,
  renderBundle,
} from '#server/current/commands/rules/bundle.ts'
import { createMachine } from '#server/current/machines/rules/machine.ts'
import { createFixture, diskOf, MAC, macOf } from '#test/support/server/machine-fixture.ts'

const test = suite('export bundle')
const NOW = '2026-05-01T00:00:00.000Z'
const OTHER = macOf('02:00:00:00:00:01')

function makeBundle() {
  const fixture = createFixture()
  fixture.disks(diskOf('S1'))
  fixture.flash('flasher-flash-once')
  fixture.done()
  const machines = [
    buildBundleMachine(fixture.machine, { json: '{"id":"core"}', at: NOW }),
    buildBundleMachine(createMachine(OTHER, 'ipxe-exit', NOW), null),
  ]
  return { fixture, bundle: buildBundle(machines, { version: '0.1.0', now: NOW, templates: [] }) }
}

test('the layout: native objects, sorted by MAC, nothing of what operators decided', () => {
  const { fixture, bundle } = makeBundle()
  assert.is(
    renderBundle(bundle),
    `${JSON.stringify(
      {
        bty_export_version: 3,
        exported_at: NOW,
        exported_by_bty_version: '0.1.0',
        machines: [
          {
            mac: OTHER,
            known_disks: null,
            known_disks_at: null,
            hw_lshw: null,
            hw_lshw_at: null,
          },
          {
            mac: MAC,
            known_disks: [diskOf('S1')],
            known_disks_at: fixture.now(),
            hw_lshw: { id: 'core' },
            hw_lshw_at: NOW,
          },
        ],
      },
      null,
      2,
    )}\n`,
  )
})

test('numbers of the hardware are exported and imported as they were spelled', () => {
  const tree = '{"id":"core","size":18446744073709551615,"clock":1.0,"e":[1E+2,-0]}'
  const machine = buildBundleMachine(createMachine(OTHER, 'ipxe-exit', NOW), {
    json: tree,
    at: NOW,
  })
  const about = { version: '0.1.0', now: NOW, templates: [] }
  const text = renderBundle(buildBundle([machine], about))
  assert.is(text.match(/"hw_lshw": (\{[^}]*\})/)?.[1]?.replaceAll(/\s/g, ''), tree)
  const parsed = parseBundle(text)
  assert.is(parsed.ok && JSON.stringify(parsed.value.machines[0]?.hw_lshw), tree)
})

test('what was exported is imported, as flasher-inventory with its bindings cleared', () => {
  const { fixture, bundle } = makeBundle()
  const parsed = parseBundle(renderBundle(bundle))
  assert.equal(parsed, { ok: true, value: bundle })
  if (!parsed.ok) return
  const [, machine] = parsed.value.machines
  assert.ok(machine)
  const later = '2026-06-01T00:00:00.000Z'
  const locked = { ...fixture.machine, locked: true, serial_console: 'ttyS1' } as const
  assert.equal(importMachine(machine, locked, later), {
    ...createMachine(MAC, 'flasher-inventory', later),
    known_disks: [diskOf('S1')],
    known_disks_at: fixture.now(),
    locked: true,
    serial_console: 'ttyS1',
  })
  assert.is(importMachine(machine, null, later).locked, false)
})

test('a name goes with its machine; a bundle without one leaves the name that is there', () => {
  const named = { ...createMachine(MAC, 'ipxe-exit', NOW), name: 'Rack 1' }
  const bundle = buildBundle([buildBundleMachine(named, null)], {
    version: '0.1.0',
    now: NOW,
    templates: [],
  })
  const [machine] = bundle.machines
  assert.ok(machine)
  assert.is(machine.name, 'Rack 1')
  assert.is(importMachine(machine, null, NOW).name, 'Rack 1')
  const { name: _, ...nameless } = machine
  assert.is(importMachine(nameless, named, NOW).name, 'Rack 1')
  const hostile = parseBundle(withMachine({ name: 'a\u202e' }))
  assert.ok(hostile.ok)
  assert.is(hostile.value.machines[0]?.name, null)
})

const bundleWith = (more: object) =>
  JSON.stringify({
    bty_export_version: 3,
    exported_at: NOW,
    exported_by_bty_version: '0.66.0',
    machines: [],
    ...more,
  })
const withMachine = (machine: object) => bundleWith({ machines: [{ mac: MAC, ...machine }] })

test('MACs in any spelling, times with an offset', () => {
  const parsed = parseBundle(
    bundleWith({
      machines: [
        {
          mac: '52-54-00-AA-BB-CC',
          known_disks: [],
          known_disks_at: '2026-01-01T00:00:00.5+00:00',
        },
      ],
    }),
  )
  assert.ok(parsed.ok)
  assert.equal(parsed.value.machines, [
    {
      mac: macOf('52:54:00:aa:bb:cc'),
      known_disks: [],
      known_disks_at: '2026-01-01T00:00:00.5Z',
      hw_lshw: null,
      hw_lshw_at: null,
    },
  ])
})

const REFUSED = [
  ['', /not JSON/],
  ['[]', /not an export bundle/],
  ['{}', /has no bty_export_version/],
  [bundleWith({ bty_export_version: 1 }), /version 1, from before release 0\.31\.0.*export again/],
  [bundleWith({ bty_export_version: 2 }), /version 2.*with image bytes.*export again/],
  [bundleWith({ bty_export_version: 4 }), /version 4; only version 3/],
  [bundleWith({ bty_export_version: '3' }), /version "3"; only version 3/],
  [bundleWith({ machines: {} }), /^machines: /],
  [withMachine({ mac: 'x' }), /^machines\.0\.mac: "x" is not a MAC/],
  [withMachine({ known_disks: '[]' }), /^machines\.0\.known_disks: /],
  [withMachine({ known_disks: [{ path: 5 }] }), /^machines\.0\.known_disks\.0\.path: /],
  [withMachine({ known_disks_at: 'yesterday' }), /^machines\.0\.known_disks_at: /],
  [withMachine({ hw_lshw: 'text' }), /^machines\.0\.hw_lshw: /],
  [
    bundleWith({ machines: [{ mac: MAC }, { mac: MAC.toUpperCase() }] }),
    /^machines\.1\.mac: .* is listed twice/,
  ],
] as const
for (const [text, reason] of REFUSED) {
  test(`refused: ${text.slice(0, 100)}`, () => {
    const parsed = parseBundle(text)
    assert.ok(!parsed.ok)
    assert.match(parsed.refusal, reason)
  })
}

test.run()
