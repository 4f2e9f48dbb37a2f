import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { buildBundle, buildBundleMachine, renderBundle } from '#server/current/rules/bundle.ts'
import { createMachine } from '#server/current/rules/machine.ts'
import { bundlesOf, populate } from '#test/support/server/backups.ts'
import {
  createStateFolder,
  faultOf,
  machineOf,
  macOf,
  RELEASE,
} from '#test/support/server/state.ts'

const test = suite('bundle files')
const NOW = () => new Date('2026-11-21T06:55:53.000Z')

for (const count of [0, 1, 3]) {
  test(`the file is exactly the document of ${count} machines`, async () => {
    await using folder = await createStateFolder()
    await using state = await folder.open()
    if (count > 0) await populate(state, count)
    const out = join(folder.dir, 'a', 'b')
    assert.is(await bundlesOf(state, NOW).exportTo(out), count)
    assert.equal(await readdir(out), ['inventory.json'])
    const items = await Promise.all(
      (await state.machines.list()).map(async (machine) =>
        buildBundleMachine(machine, await state.machines.findHardware(machine.mac)),
      ),
    )
    const about = { version: RELEASE, now: NOW().toISOString(), templates: [] }
    const text = await readFile(join(out, 'inventory.json'), 'utf8')
    assert.is(text, renderBundle(buildBundle(items, about)))
  })
}

test('what was exported comes in elsewhere: hardware, and nothing that was decided', async () => {
  await using source = await createStateFolder()
  await using target = await createStateFolder()
  {
    await using state = await source.open()
    await populate(state)
  }
  await using from = await source.open()
  const out = join(source.dir, 'out')
  await bundlesOf(from).exportTo(out)
  await using to = await target.open()
  await to.machines.update(macOf(2), () =>
    machineOf(2, {
      boot_mode: 'flasher-flash-always',
      labels: ['old'],
      bty_image_ref: 'c'.repeat(64),
    }),
  )
  await to.machines.update(macOf(99), () => machineOf(99, { labels: ['stays'] }))
  const heard: string[] = []
  to.changes.listen((change) => heard.push(change.topic === 'machine' ? change.mac : change.topic))
  assert.is(await bundlesOf(to, NOW).importFrom(out), 3)
  assert.equal(heard, [macOf(1), macOf(2), macOf(3)])
  assert.is(await to.machines.count(), 4)
  for (const n of [1, 2, 3]) {
    const { known_disks, known_disks_at } = (await from.machines.find(macOf(n))) ?? machineOf(n)
    const fresh = createMachine(macOf(n), 'flasher-inventory', NOW().toISOString())
    assert.equal(await to.machines.find(macOf(n)), { ...fresh, known_disks, known_disks_at })
    assert.is(known_disks?.length, 1)
    const hardware = await to.machines.findHardware(macOf(n))
    assert.equal(JSON.parse(hardware?.json ?? '{}'), { id: `box-${n}`, children: [] })
  }
  assert.equal((await to.machines.find(macOf(99)))?.labels, ['stays'])
})

const bundle = (over: Readonly<Record<string, unknown>>) =>
  JSON.stringify({
    bty_export_version: 3,
    exported_at: '2026-11-21T06:55:53+00:00',
    exported_by_bty_version: '0.66.1',
    machines: [
      { mac: macOf(1), known_disks: null, known_disks_at: null, hw_lshw: null, hw_lshw_at: null },
    ],
    ...over,
  })
const REFUSED: readonly (readonly [string, string, string])[] = [
  ['version 1', bundle({ bty_export_version: 1 }), 'version 1'],
  ['version 2', bundle({ bty_export_version: 2 }), 'version 2'],
  ['version 4', bundle({ bty_export_version: 4 }), 'version 4'],
  ['version as text', bundle({ bty_export_version: '3' }), 'version'],
  ['no version', '{"machines":[]}', 'bty_export_version'],
  ['no JSON', '{"machines":', 'JSON'],
  ['nothing', '', 'JSON'],
  ['a bad MAC behind a good one', bundle({ machines: [{ mac: macOf(1) }, { mac: 'x' }] }), 'MAC'],
  [
    'disks that are no list',
    bundle({ machines: [{ mac: macOf(1), known_disks: 7 }] }),
    'known_disks',
  ],
]
for (const [name, text, word] of REFUSED) {
  test(`refused, naming the file, and nothing is changed: ${name}`, async () => {
    await using folder = await createStateFolder()
    await using state = await folder.open()
    await populate(state, 1)
    const before = await state.machines.list()
    const dir = join(folder.dir, 'in')
    await mkdir(dir)
    await writeFile(join(dir, 'inventory.json'), text)
    const fault = await faultOf(bundlesOf(state).importFrom(dir))
    assert.is(fault.code, 'input-invalid')
    assert.match(fault.message, join(dir, 'inventory.json'))
    assert.match(fault.message, word)
    assert.equal(await state.machines.list(), before)
  })
}

test('a folder without a bundle is named', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  const fault = await faultOf(bundlesOf(state).importFrom(folder.dir))
  assert.is(fault.code, 'input-missing')
  assert.match(fault.message, 'inventory.json')
})

test('an export that fails leaves the one before', async () => {
  await using folder = await createStateFolder()
  const out = join(folder.dir, 'out')
  {
    await using state = await folder.open()
    await populate(state, 2)
    await bundlesOf(state).exportTo(out)
    await state.database.write((sql) => sql.run(`UPDATE hardware SET tree = x'00'`))
    await faultLess(bundlesOf(state).exportTo(out))
  }
  assert.equal(await readdir(out), ['inventory.json'])
  assert.is(JSON.parse(await readFile(join(out, 'inventory.json'), 'utf8')).machines.length, 2)
})

const faultLess = (promise: Promise<unknown>) =>
  promise.then(
    () => assert.unreachable('it should fail'),
    () => undefined,
  )

test.run()
